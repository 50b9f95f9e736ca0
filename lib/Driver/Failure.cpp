#include "lib/Driver/Failure.h"
#include "llvm/Support/raw_ostream.h"

namespace flow {

char Failure::ID = 0;

int finish(llvm::StringRef tool, llvm::Error error) {
  ExitCode code = ExitCode::Ok;
  llvm::handleAllErrors(
      std::move(error),
      [&](const Failure &failure) {
        code = failure.getCode();
        llvm::errs() << tool << ": " << failure.message() << "\n";
      },
      [&](const llvm::ErrorInfoBase &other) {
        code = ExitCode::Unsupported;
        llvm::errs() << tool << ": " << other.message() << "\n";
      });
  return static_cast<int>(code);
}

} // namespace flow
