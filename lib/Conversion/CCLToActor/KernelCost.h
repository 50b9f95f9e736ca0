// How much work a kernel function is.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace flow {

struct KernelCost {
  int64_t flops = 0;
  int64_t bytesMoved = 0;
};

/// Scalar operations of the linalg ops in `kernel`, and the bytes of its
/// arguments and results. An estimate that orders the schedule, nothing more.
KernelCost estimateCost(mlir::func::FuncOp kernel);

/// Bytes of a static tensor; a boolean takes one.
int64_t sizeInBytes(mlir::RankedTensorType type);

} // namespace flow
