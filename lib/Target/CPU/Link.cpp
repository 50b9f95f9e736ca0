#include "lib/Target/CPU/Link.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace flow {

static constexpr StringLiteral kLoader = "/lib64/ld-linux-x86-64.so.2";
static constexpr StringLiteral kLibraryFolders[] = {"/lib/x86_64-linux-gnu",
                                                    "/usr/lib/x86_64-linux-gnu",
                                                    "/lib64",
                                                    "/usr/lib64",
                                                    "/lib",
                                                    "/usr/lib"};
/// By their run-time names: the ones without a version are in the -dev
/// packages.
static constexpr StringLiteral kSystemLibraries[] = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1",
                                                     "libc.so.6"};

static Expected<std::string> findSystemLibrary(StringRef name) {
  for (StringRef folder : kLibraryFolders) {
    SmallString<128> path(folder);
    sys::path::append(path, name);
    if (sys::fs::exists(path))
      return path.str().str();
  }
  return createStringError("the system library " + name + " was not found; try --linker=cc");
}

static Error writeObjects(ArrayRef<ObjectFile> objects, StringRef folder,
                          std::vector<std::string> &paths) {
  for (auto [index, object] : llvm::enumerate(objects)) {
    SmallString<128> path(folder);
    sys::path::append(path, "part" + Twine(index) + ".o");
    std::error_code code;
    raw_fd_ostream stream(path, code);
    if (code)
      return createStringError("cannot write " + path + ": " + code.message());
    stream.write(object.data(), object.size());
    paths.push_back(path.str().str());
  }
  return Error::success();
}

static StringRef firstLine(StringRef text) {
  StringRef line = text.trim().split('\n').first;
  line.consume_front("ld.lld: ");
  line.consume_front("error: ");
  return line;
}

static Error linkWithLld(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"ld.lld", "-pie", "--eh-frame-hdr", "--gc-sections",
                                       "--strip-debug", "--hash-style=gnu", "-znow",
                                       "-znoexecstack", "-dynamic-linker", kLoader.str()});
  arguments.push_back("--as-needed");
  for (StringRef name : kSystemLibraries) {
    Expected<std::string> path = findSystemLibrary(name);
    if (!path)
      return path.takeError();
    arguments.push_back(*path);
  }
  arguments.push_back(kLoader.str());
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  std::string text;
  raw_string_ostream errors(text);
  lld::Result result = lld::lldMain(pointers, nulls(), errors, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return createStringError("linking failed: " + firstLine(text));
  return Error::success();
}

static Error linkWithCc(std::vector<std::string> arguments, StringRef folder) {
  ErrorOr<std::string> cc = sys::findProgramByName("cc");
  if (!cc)
    return createStringError("--linker=cc: no program named cc was found");
  arguments.insert(arguments.begin(), {"cc", "-pie", "-Wl,--gc-sections", "-Wl,--strip-debug"});
  arguments.insert(arguments.end(), {"-lstdc++", "-lm", "-lpthread"});
  SmallVector<StringRef> references(arguments.begin(), arguments.end());
  SmallString<128> log(folder);
  sys::path::append(log, "log");
  std::optional<StringRef> redirects[] = {StringRef(), log.str(), log.str()};
  std::string message;
  if (sys::ExecuteAndWait(*cc, references, std::nullopt, redirects, 0, 0, &message) == 0)
    return Error::success();
  if (auto buffer = MemoryBuffer::getFile(log))
    message = firstLine((*buffer)->getBuffer()).str();
  return createStringError("linking with cc failed: " + message);
}

Error linkExecutable(ArrayRef<ObjectFile> objects, StringRef output, const LinkOptions &options) {
  SmallString<128> folder;
  if (std::error_code code = sys::fs::createUniqueDirectory("flow-link", folder))
    return createStringError("no temporary folder for linking: " + code.message());
  scope_exit removeFolder([&] { sys::fs::remove_directories(folder); });
  std::vector<std::string> arguments{"-o", output.str()};
  if (Error error = writeObjects(objects, folder, arguments))
    return error;
  for (StringRef name : {"libflow_startup.a", "libflow_runtime.a"}) {
    SmallString<128> path(options.libraries);
    sys::path::append(path, name);
    if (!sys::fs::exists(path))
      return createStringError("flow's library " + path + " is missing");
    arguments.push_back(path.str().str());
  }
  return options.linker == Linker::Cc ? linkWithCc(std::move(arguments), folder)
                                      : linkWithLld(std::move(arguments));
}

} // namespace flow
