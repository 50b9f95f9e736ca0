// The language server of .mlir files with flow's dialects.
#include "lib/Pipelines/Registration.h"
#include "mlir/IR/Dialect.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  flow::registerDialects(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry)) ? 1 : 0;
}
