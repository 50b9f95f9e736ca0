// Translates models between files and MLIR; without an option of ours it is mlir-translate.
#include "lib/Legalize/ONNX/Passes.h"
#include "lib/Translation/ONNX/OnnxTranslation.h"
#include "mlir/InitAllTranslations.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "llvm/ADT/StringMap.h"

static constexpr const char *kUsage =
    "usage: flow-translate --import-onnx M.onnx [-o M.mlir]\n"
    "       flow-translate --export-onnx M.onnx --weights=W.safetensors -o T.onnx\n"
    "       flow-translate [options of mlir-translate]";

static int usage(const std::string &what) {
  llvm::errs() << "flow-translate: error: " << what << "\n" << kUsage << "\n";
  return 2;
}

int main(int argc, char **argv) {
  auto isOurs = [](llvm::StringRef argument) {
    return argument.starts_with("--import-onnx") || argument.starts_with("--export-onnx");
  };
  if (llvm::none_of(llvm::ArrayRef(argv, argc), isOurs)) {
    mlir::registerAllTranslations();
    return mlir::failed(mlir::mlirTranslateMain(argc, argv, "flow translation driver"));
  }
  std::string importModel, exportModel, weights, out;
  const llvm::StringMap<std::string *> options{{"--import-onnx", &importModel},
                                               {"--export-onnx", &exportModel},
                                               {"--weights", &weights},
                                               {"-o", &out}};
  for (int i = 1; i < argc; ++i) {
    auto [name, value] = llvm::StringRef(argv[i]).split('=');
    std::string *option = options.lookup(name);
    if (!option || (value.empty() && i + 1 == argc))
      return usage("unexpected '" + std::string(argv[i]) + "'");
    *option = value.empty() ? argv[++i] : value.str();
  }
  std::string error;
  flow::Outcome outcome;
  if (!importModel.empty() && exportModel.empty() && weights.empty())
    outcome =
        flow::importOnnxToText(importModel, out, {.supports = flow::onnxOperatorSupport()}, error);
  else if (importModel.empty() && !weights.empty() && !out.empty())
    outcome = flow::exportOnnx(exportModel, weights, out, error);
  else
    return usage("expected a model, --weights and -o");
  if (outcome != flow::Outcome::Success)
    llvm::errs() << "flow-translate: error: " << error << "\n";
  return static_cast<int>(outcome);
}
