// Translates models between files and MLIR; without one of flow's own options it is
// mlir-translate.
#include "lib/Legalize/ONNX/Passes.h"
#include "lib/Translation/ONNX/OnnxTranslation.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllTranslations.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "llvm/Support/ToolOutputFile.h"

static constexpr const char *kUsage = R"(usage:
  flow-translate --import-onnx MODEL.onnx [-o MODEL.mlir]
  flow-translate --export-onnx MODEL.onnx --weights=WEIGHTS.safetensors -o TRAINED.onnx
  flow-translate [options of mlir-translate]
)";

static int fail(int code, const std::string &what) {
  llvm::errs() << "flow-translate: error: " << what << "\n";
  return code;
}

static int import(llvm::StringRef model, llvm::StringRef out) {
  mlir::MLIRContext context;
  mlir::ScopedDiagnosticHandler handler(&context, [](mlir::Diagnostic &diagnostic) {
    fail(0, diagnostic.str());
  });
  flow::ImportedModel imported = flow::importOnnx(model, context, {.supports = flow::onnxOperatorSupport()});
  if (!imported.module)
    return static_cast<int>(imported.outcome);
  std::string error;
  auto file = mlir::openOutputFile(out.empty() ? "-" : out, &error);
  if (!file)
    return fail(1, error);
  imported.module->print(file->os(), mlir::OpPrintingFlags().enableDebugInfo());
  file->keep();
  return 0;
}

int main(int argc, char **argv) {
  std::string importModel, exportModel, weights, out;
  llvm::StringRef first = argc > 1 ? argv[1] : "";
  if (!first.starts_with("--import-onnx") && !first.starts_with("--export-onnx")) {
    mlir::registerAllTranslations();
    return mlir::failed(mlir::mlirTranslateMain(argc, argv, "flow translation driver"));
  }
  const std::pair<llvm::StringRef, std::string *> options[] = {
      {"--import-onnx", &importModel}, {"--export-onnx", &exportModel}, {"--weights", &weights}, {"-o", &out}};
  for (int i = 1; i < argc; ++i) {
    auto [name, value] = llvm::StringRef(argv[i]).split('=');
    auto *option = llvm::find_if(options, [&](auto &o) { return o.first == name; });
    if (option == std::end(options) || (value.empty() && i + 1 == argc))
      return fail(2, "unexpected '" + std::string(argv[i]) + "'\n" + kUsage);
    *option->second = value.empty() ? argv[++i] : value.str();
  }
  if (!importModel.empty() && exportModel.empty() && weights.empty())
    return import(importModel, out);
  if (!importModel.empty() || weights.empty() || out.empty())
    return fail(2, std::string("expected a model, --weights and -o\n") + kUsage);
  std::string error;
  flow::Outcome outcome = flow::exportOnnx(exportModel, weights, out, error);
  return outcome == flow::Outcome::Success ? 0 : fail(static_cast<int>(outcome), error);
}
