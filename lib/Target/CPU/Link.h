// Links object files and libflow_runtime into an executable.
#pragma once
#include "lib/Target/CPU/ObjectCode.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace flow {

enum class Linker {
  Lld, ///< in this process; needs neither gcc nor libc6-dev
  Cc   ///< the system's `cc`, for systems whose libraries lie elsewhere
};

struct LinkOptions {
  Linker linker = Linker::Lld;
  /// Folder of libflow_runtime.a and libflow_startup.a.
  std::string libraries;
};

/// Writes the executable `output`. Object files lie in a temporary folder
/// that is removed before the return.
llvm::Error linkExecutable(llvm::ArrayRef<ObjectFile> objects, llvm::StringRef output,
                           const LinkOptions &options);

} // namespace flow
