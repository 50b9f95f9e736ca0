#include "lib/Driver/OutputFile.h"
#include "lib/Driver/Failure.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace flow {

Expected<OutputFile> OutputFile::create(StringRef path, bool executable) {
  if (sys::fs::is_directory(path))
    return inputError("cannot write " + path + ": it is a directory");
  // A device is not replaced by a file.
  if (sys::fs::exists(path) && !sys::fs::is_regular_file(path))
    return inputError("cannot write " + path + ": it is not a regular file");
  OutputFile file;
  file.path = path.str();
  unsigned mode = sys::fs::all_read | sys::fs::owner_write | (executable ? sys::fs::all_exe : 0);
  int descriptor;
  if (std::error_code code = sys::fs::createUniqueFile(path + ".tmp%%%%%%", descriptor,
                                                       file.temporary, sys::fs::OF_None, mode))
    return inputError("cannot write " + path + ": " + code.message());
  sys::Process::SafelyCloseFileDescriptor(descriptor);
  sys::RemoveFileOnSignal(file.temporary);
  return file;
}

OutputFile::OutputFile(OutputFile &&other)
    : path(std::move(other.path)), temporary(other.temporary) {
  other.temporary.clear();
}

OutputFile::~OutputFile() {
  if (temporary.empty())
    return;
  sys::fs::remove(temporary);
  sys::DontRemoveFileOnSignal(temporary);
}

Error OutputFile::write(StringRef bytes) {
  std::error_code code;
  raw_fd_ostream stream(temporary, code);
  if (!code) {
    stream << bytes;
    stream.close();
    code = stream.error();
    stream.clear_error();
  }
  return code ? inputError("cannot write " + path + ": " + code.message()) : Error::success();
}

Error OutputFile::keep() {
  if (std::error_code code = sys::fs::rename(temporary, path))
    return inputError("cannot write " + path + ": " + code.message());
  sys::DontRemoveFileOnSignal(temporary);
  temporary.clear();
  return Error::success();
}

} // namespace flow
