// Dims that pass from operands to the result of tensor ops unchanged.
#pragma once

#include "mlir/IR/Operation.h"

namespace flow {

struct DimPair {
  mlir::OpOperand *operand;
  unsigned operandDim, resultDim;
};

/// The dims along which slices, pads, concatenations, casts and softmax work on
/// each slice alone: splitting them splits operand and result alike. Empty for
/// other ops.
llvm::SmallVector<DimPair> passingDims(mlir::Operation *op);

} // namespace flow
