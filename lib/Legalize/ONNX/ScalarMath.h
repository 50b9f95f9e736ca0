// Scalar expressions that the rules' bodies are made of.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace flow::onnx_rules {

/// A float or integer constant of that type.
mlir::Value scalar(mlir::ImplicitLocOpBuilder &b, mlir::Type type, double value);
/// `x < y` and the like, by the operands' type.
mlir::Value compare(mlir::ImplicitLocOpBuilder &b, mlir::arith::CmpFPredicate forFloats,
                    mlir::arith::CmpIPredicate forIntegers, mlir::Value x, mlir::Value y);
mlir::Value select(mlir::ImplicitLocOpBuilder &b, mlir::Value condition, mlir::Value x,
                   mlir::Value y);

/// 1 / (1 + exp(-x))
mlir::Value sigmoid(mlir::ImplicitLocOpBuilder &b, mlir::Value x);
/// log(1 + exp(x)) without overflow
mlir::Value softplus(mlir::ImplicitLocOpBuilder &b, mlir::Value x);

/// Quotient towards zero. Never traps: x / 0 is 0, the smallest number / -1 is itself.
mlir::Value divideIntegers(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value y,
                           bool isUnsigned);
/// Remainder with the sign of y (`floor`) or of x. Never traps: x mod 0 is 0.
mlir::Value moduloIntegers(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value y, bool floor,
                           bool isUnsigned);

/// ONNX's Cast of one element between signless types; the flags give the signs.
mlir::Value castScalar(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Type to,
                       bool fromUnsigned, bool toUnsigned);

} // namespace flow::onnx_rules
