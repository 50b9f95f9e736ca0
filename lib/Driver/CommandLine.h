// The command lines of flow-compile and flow-run.
#pragma once
#include "lib/Driver/CompileOptions.h"
#include "lib/Driver/Run.h"

namespace flow {

/// Parses the arguments of flow-compile, MLIR's debugging flags included.
/// `--help` and `--version` print and exit. Once per process.
llvm::Expected<CompileOptions> parseCompileCommandLine(int argc, char **argv);

/// The same for flow-run.
llvm::Expected<RunOptions> parseRunCommandLine(int argc, char **argv);

} // namespace flow
