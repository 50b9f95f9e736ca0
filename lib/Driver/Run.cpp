#include "lib/Driver/Run.h"
#include "lib/Driver/ArrayShapes.h"
#include "lib/Driver/Compile.h"
#include "lib/Driver/Failure.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace llvm;

namespace flow {

static std::vector<std::string> programArguments(const RunOptions &options, StringRef program) {
  std::vector<std::string> arguments{program.str(), options.input, options.output};
  if (options.ranks)
    arguments.push_back("--ranks=" + std::to_string(*options.ranks));
  if (!options.dumpLocal.empty())
    arguments.push_back("--dump-local=" + options.dumpLocal);
  return arguments;
}

Expected<int> runModel(const RunOptions &options) {
  CompileOptions compile = options.compile;
  if (!sys::fs::exists(compile.model))
    return inputError("cannot read " + compile.model + ": no such file");
  Expected<ArrayShapes> shapes = readArrayShapes(options.input);
  if (!shapes)
    return shapes.takeError();
  compile.inputShapes = std::move(*shapes);
  SmallString<128> folder;
  if (std::error_code code = sys::fs::createUniqueDirectory("flow-run", folder))
    return inputError("no temporary folder for the program: " + code.message());
  scope_exit removeFolder([&] { sys::fs::remove_directories(folder); });
  SmallString<128> program(folder);
  sys::path::append(program, "flow-run");
  compile.output = program.str().str();
  if (Error error = compileModel(compile))
    return error;
  std::vector<std::string> arguments = programArguments(options, program);
  SmallVector<StringRef> references(arguments.begin(), arguments.end());
  std::string message;
  int code = sys::ExecuteAndWait(program, references, std::nullopt, {}, 0, 0, &message);
  if (code < 0)
    return unsupportedError("the program could not run: " + message);
  return code;
}

} // namespace flow
