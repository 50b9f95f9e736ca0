// Runs any pass or pipeline on MLIR text.
#include "lib/Pipelines/Registration.h"
#include "mlir/IR/Dialect.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  flow::registerDialects(registry);
  flow::registerPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "flow optimizer driver\n", registry));
}
