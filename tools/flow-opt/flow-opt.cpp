// Runs any pass or pipeline on MLIR text.
#include "lib/Pipelines/Registration.h"
#include "mlir/IR/Dialect.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/STLExtras.h"
#include <vector>

int main(int argc, char **argv) {
  // This pass prints JSON instead of a module.
  std::vector<char *> arguments(argv, argv + argc);
  char noModule[] = "-o=/dev/null";
  auto is = [](llvm::StringRef flag) {
    return [flag](llvm::StringRef a) {
      return a.consume_front("-") && (a.consume_front("-"), a.split('=').first == flag);
    };
  };
  if (llvm::any_of(arguments, is("flow-print-signatures")) && llvm::none_of(arguments, is("o")))
    arguments.push_back(noModule);
  mlir::DialectRegistry registry;
  flow::registerDialects(registry);
  flow::registerPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(arguments.size(), arguments.data(), "flow optimizer driver\n", registry));
}
