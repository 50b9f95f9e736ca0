// Compiles a model into a temporary program and runs it once.
#include "lib/Driver/CommandLine.h"
#include "lib/Driver/Failure.h"

int main(int argc, char **argv) {
  llvm::Expected<flow::RunOptions> options = flow::parseRunCommandLine(argc, argv);
  if (!options)
    return flow::finish("flow-run", options.takeError());
  return flow::runGuarded("flow-run", [&] {
    llvm::Expected<int> code = flow::runModel(*options);
    return code ? *code : flow::finish("flow-run", code.takeError());
  });
}
