// Remarks how each boxing will be done.
#include "dialects/Flow/IR/FlowOps.h"
#include "dialects/Flow/Rules/BoxingPath.h"
#include "dialects/Flow/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace flow;

namespace flow {
#define GEN_PASS_DEF_PRINTBOXING
#include "dialects/Flow/Transforms/Passes.h.inc"
} // namespace flow

namespace {
struct PrintBoxing : flow::impl::PrintBoxingBase<PrintBoxing> {
  void runOnOperation() override {
    getOperation().walk([](BoxingOp op) {
      if (ShapedType::isDynamicShape(op.getInput().getType().getShape()))
        return;
      BoxingPath path = findBoxingPath(op.getInput().getType(), op.getResult().getType());
      op.emitRemark() << path.str() << ": " << path.totalBytes() << " bytes";
    });
    markAllAnalysesPreserved();
  }
};
} // namespace
