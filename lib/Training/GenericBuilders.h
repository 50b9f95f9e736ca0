// Short builders of linalg ops that the training passes write themselves.
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"

namespace flow::training {

using ScalarBody =
    llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

inline mlir::RankedTensorType tensorTypeOf(mlir::Value v) {
  return mlir::cast<mlir::RankedTensorType>(v.getType());
}

/// A scalar constant; `value` is rounded to a float type, truncated to an integer or index type.
mlir::Value scalarConstant(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, double value);

/// A tensor of `type` filled with one value; dynamic sizes are those of `like`.
mlir::Value filled(mlir::OpBuilder &b, mlir::Location loc, mlir::RankedTensorType type,
                   double value, mlir::Value like = {});

/// An elementwise generic. Operands have the shape of the first one, or rank 0 and are broadcast.
/// `body` gets one scalar per operand.
mlir::Value elementwise(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange ins,
                        mlir::Type element, ScalarBody body);

/// Sum of two tensors of one type.
mlir::Value addTensors(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::Value y);

/// The type in which sums of `element` are accumulated: never less than 32 bits.
mlir::Type accumulatorType(mlir::Type element);

/// Converts between float types; returns `v` if there is nothing to do.
mlir::Value convertFloat(mlir::OpBuilder &b, mlir::Location loc, mlir::Value v, mlir::Type to);

} // namespace flow::training
