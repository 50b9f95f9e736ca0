// Reshapes as collapse_shape and expand_shape over the smallest groups of dims.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace flow::onnx_rules {

/// The same elements in row-major order in another static shape of as many elements. Dims
/// are grouped as finely as possible: [B, 2, 6] -> [B, 3, 4] leaves B alone.
mlir::Value reshape(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                    llvm::ArrayRef<int64_t> shape);

/// linalg.transpose, or the value itself for the identity.
mlir::Value transpose(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                      llvm::ArrayRef<int64_t> permutation);

} // namespace flow::onnx_rules
