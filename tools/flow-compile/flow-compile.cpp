// Compiles a model into an executable, an object file or the IR of a phase.
#include "lib/Driver/CommandLine.h"
#include "lib/Driver/Compile.h"
#include "lib/Driver/Failure.h"

int main(int argc, char **argv) {
  llvm::Expected<flow::CompileOptions> options = flow::parseCompileCommandLine(argc, argv);
  if (!options)
    return flow::finish("flow-compile", options.takeError());
  return flow::runGuarded(
      "flow-compile", [&] { return flow::finish("flow-compile", flow::compileModel(*options)); });
}
