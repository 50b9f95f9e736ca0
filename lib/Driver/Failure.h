// Why a tool stops: a message for people and the exit code that belongs to it.
#pragma once
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <string>

namespace flow {

/// The exit codes of every tool and compiled program; 75 (a rank was lost)
/// comes from compiled programs only.
enum class ExitCode { Ok = 0, Input = 1, Usage = 2, Unsupported = 3 };

class Failure : public llvm::ErrorInfo<Failure> {
public:
  static char ID;
  Failure(ExitCode code, std::string text) : code(code), text(std::move(text)) {}
  ExitCode getCode() const { return code; }
  void log(llvm::raw_ostream &stream) const override { stream << text; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  ExitCode code;
  std::string text;
};

/// A file is missing, unwritable or has the wrong content.
inline llvm::Error inputError(const llvm::Twine &text) {
  return llvm::make_error<Failure>(ExitCode::Input, text.str());
}
/// A flag or its value is wrong.
inline llvm::Error usageError(const llvm::Twine &text) {
  return llvm::make_error<Failure>(ExitCode::Usage, text.str());
}
/// Legal, but not something that this compiler or machine can do.
inline llvm::Error unsupportedError(const llvm::Twine &text) {
  return llvm::make_error<Failure>(ExitCode::Unsupported, text.str());
}

/// Prints one message on stderr, if there is an error, and returns the exit
/// code of the process. Errors of LLVM's libraries count as "not supported".
int finish(llvm::StringRef tool, llvm::Error error);

/// Runs a tool's main part. A crash of the compiler ends in one message and
/// exit code 3 with its temporary files removed, not in a signal.
int runGuarded(llvm::StringRef tool, llvm::function_ref<int()> body);

} // namespace flow
