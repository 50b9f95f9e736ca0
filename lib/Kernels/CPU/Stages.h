// Parts of a kernel that one path of this room lowers for another.
#pragma once

#include "lib/Kernels/CPU/Kernel.h"

namespace flow {

/// Lowers `op` with register tiles into `to` if it is a contraction that this
/// suits; true if it did, false if it is something else, failure on an error.
/// `writeInit` writes the start values to `to`, where tiles add to memory.
mlir::FailureOr<bool> lowerContractionStage(Kernel &kernel, mlir::linalg::LinalgOp op,
                                            const Place &to,
                                            llvm::function_ref<mlir::LogicalResult()> writeInit);

/// Tensors from outside that the op's body reads by tensor.extract.
llvm::SmallVector<mlir::Value> tablesOf(mlir::linalg::LinalgOp op);

} // namespace flow
