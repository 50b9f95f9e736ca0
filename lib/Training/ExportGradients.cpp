// A function with gradients becomes the inference program.
#include "lib/Training/Passes.h"
#include "lib/Training/ProgramSignature.h"

using namespace mlir;

namespace flow::training {
#define GEN_PASS_DEF_EXPORTGRADIENTS
#include "lib/Training/Passes.h.inc"

namespace {

struct ExportGradients : impl::ExportGradientsBase<ExportGradients> {
  using ExportGradientsBase::ExportGradientsBase;
  void runOnOperation() override;
};

void ExportGradients::runOnOperation() {
  if (auto eval = getOperation().lookupSymbol<func::FuncOp>("eval"))
    eval.erase();
  auto function = getOperation().lookupSymbol<func::FuncOp>("step");
  if (function)
    function.setSymName("main");
  else
    function = getOperation().lookupSymbol<func::FuncOp>("main");
  if (!function) {
    getOperation().emitError("there is no function @step or @main");
    return signalPassFailure();
  }
  Builder b(&getContext());
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (StringRef kind = resultKind(function, i); kind == "gradient" || kind == "loss")
      function.setResultAttr(i, kKind, b.getStringAttr("output"));
}

} // namespace
} // namespace flow::training
