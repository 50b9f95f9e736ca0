// Elementwise generics with NumPy's broadcasting.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Support/LLVM.h"

namespace flow::onnx_rules {

using Body = llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;

/// The shape that all shapes broadcast to, nothing if they contradict each other.
std::optional<llvm::SmallVector<int64_t>>
broadcastShapes(llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes);

/// One generic over the broadcast shape of the inputs (and `shape`, if given): the body
/// gets a scalar per input. A dim of size 1 that is broadcast is dropped from its operand
/// first, so that every indexing map is a projected permutation.
mlir::Value elementwise(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange inputs,
                        mlir::Type resultElement, Body body,
                        std::optional<llvm::ArrayRef<int64_t>> shape = std::nullopt);

/// As `elementwise`, but f16 and bf16 scalars are widened to f32 for the body and its
/// result is narrowed again.
mlir::Value elementwiseWide(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange inputs,
                            mlir::Type resultElement, Body body);

/// A value repeated to a broadcast-compatible shape.
mlir::Value broadcastTo(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                        llvm::ArrayRef<int64_t> shape);

/// f32 for f16 and bf16, else the type itself.
mlir::Type wideType(mlir::Type element);

/// A tensor with other elements, by extension or truncation of floats.
mlir::Value castFloats(mlir::ImplicitLocOpBuilder &b, mlir::Value value, mlir::Type element);

} // namespace flow::onnx_rules
