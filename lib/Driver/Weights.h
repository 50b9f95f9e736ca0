// The weights file beside an executable: safetensors, copied from the model's
// files without going through memory of our own.
#pragma once
#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"

namespace mlir {
class ModuleOp;
}

namespace flow {

/// Gives every `ml_program.global` with bytes its place in the weights file, as
/// the attribute `flow.file_offset` relative to the file's data. Zeros need no
/// place. Wide elements come first, so that all are aligned without holes
/// (which readers of safetensors refuse). Returns the number of tensors.
size_t placeWeights(mlir::ModuleOp module);

/// Writes the file that `placeWeights` laid out.
llvm::Error writeWeights(mlir::ModuleOp module, llvm::StringRef path);

} // namespace flow
