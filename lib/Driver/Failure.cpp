#include "lib/Driver/Failure.h"
#include "llvm/Support/CrashRecoveryContext.h"
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

int runGuarded(llvm::StringRef tool, llvm::function_ref<int()> body) {
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext context;
  context.DumpStackAndCleanupOnFailure = true;
  int code = 0;
  if (context.RunSafely([&] { code = body(); }))
    return code;
  llvm::errs() << tool
               << ": the compiler crashed, which is a fault of flow; --mlir-print-ir-after-change "
                  "shows where\n";
  return static_cast<int>(ExitCode::Unsupported);
}

} // namespace flow
