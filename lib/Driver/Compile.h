// From a model to an executable, an object file or the IR of a phase.
#pragma once
#include "lib/Driver/CompileOptions.h"
#include "llvm/Support/Error.h"

namespace flow {

/// Compiles and writes `options.output` (and its weights file): beside the
/// place first, then renamed, so that nothing half-made is ever left. Errors
/// are `Failure`s with an exit code.
llvm::Error compileModel(const CompileOptions &options);

} // namespace flow
