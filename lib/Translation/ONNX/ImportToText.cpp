// From an ONNX file to a file of MLIR text.
#include "lib/Translation/ONNX/OnnxTranslation.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace flow;

Outcome flow::importOnnxToText(llvm::StringRef modelPath, llvm::StringRef outPath,
                               const OnnxImportOptions &options, std::string &error) {
  mlir::MLIRContext context;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) { error += diagnostic.str(); });
  ImportedModel imported = importOnnx(modelPath, context, options);
  if (!imported.module)
    return imported.outcome;
  auto file = mlir::openOutputFile(outPath.empty() ? "-" : outPath, &error);
  if (!file)
    return Outcome::WrongInput;
  imported.module->print(file->os(), mlir::OpPrintingFlags().enableDebugInfo());
  file->os().flush();
  if (std::error_code ec = file->os().error()) {
    error = "cannot write '" + outPath.str() + "': " + ec.message();
    file->os().clear_error();
    return Outcome::WrongInput;
  }
  file->keep();
  return Outcome::Success;
}
