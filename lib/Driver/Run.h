// Compiles a model into a temporary program and runs it.
#pragma once
#include "lib/Driver/CompileOptions.h"

namespace flow {

struct RunOptions {
  CompileOptions compile;
  std::string input;  ///< .npz with the inputs by name
  std::string output; ///< .npz
  std::optional<int64_t> ranks;
  std::string dumpLocal; ///< folder for what each rank holds; empty: none
};

/// Returns the exit code of the program, which has then printed its message.
llvm::Expected<int> runModel(const RunOptions &options);

} // namespace flow
