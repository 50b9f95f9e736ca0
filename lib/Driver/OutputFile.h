// A file that appears under its name only when it is complete.
#pragma once
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"

namespace flow {

class OutputFile {
public:
  /// Makes a file beside `path`; removed again unless `keep` is called, also
  /// when a signal ends the process.
  static llvm::Expected<OutputFile> create(llvm::StringRef path, bool executable);
  OutputFile(OutputFile &&other);
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();

  llvm::StringRef getTemporaryPath() const { return temporary; }
  llvm::Error write(llvm::StringRef bytes);
  /// Renames it to its final name.
  llvm::Error keep();

private:
  OutputFile() = default;
  std::string path;
  llvm::SmallString<128> temporary;
};

} // namespace flow
