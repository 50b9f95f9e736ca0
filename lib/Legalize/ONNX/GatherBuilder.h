// Generics that read a captured tensor at computed places.
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Support/LLVM.h"

namespace flow::onnx_rules {

/// A generic over `shape` and the operands that span it by `maps`. `place` gets the
/// operands' scalars and returns one index per dim of `table`; the result is the table's
/// element there. (tensor.gather does not bufferize.)
mlir::Value gather(mlir::ImplicitLocOpBuilder &b, mlir::Value table, llvm::ArrayRef<int64_t> shape,
                   mlir::ValueRange operands, llvm::ArrayRef<mlir::AffineMap> maps,
                   llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ImplicitLocOpBuilder &,
                                                                     mlir::ValueRange)>
                       place);

/// An index as a model gives it: negative ones count from the end, others are clamped
/// into the table, so that no element outside is ever read.
mlir::Value safeIndex(mlir::ImplicitLocOpBuilder &b, mlir::Value index, int64_t extent,
                      bool isUnsigned);

} // namespace flow::onnx_rules
