// Functions return the shapes that are known.
#include "dialects/Flow/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace flow {
#define GEN_PASS_DEF_REFINERESULTS
#include "dialects/Flow/Transforms/Passes.h.inc"
} // namespace flow

namespace {

struct RefineResults : flow::impl::RefineResultsBase<RefineResults> {
  using RefineResultsBase::RefineResultsBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal() || !function.getBody().hasOneBlock())
      return;
    Operation *terminator = function.front().getTerminator();
    for (OpOperand &operand : terminator->getOpOperands()) {
      auto cast = operand.get().getDefiningOp<tensor::CastOp>();
      if (!cast || !isa<RankedTensorType>(cast.getSource().getType()))
        continue;
      operand.set(cast.getSource());
      if (cast->use_empty())
        cast.erase();
    }
    function.setType(FunctionType::get(&getContext(), function.getArgumentTypes(),
                                       terminator->getOperandTypes()));
  }
};

} // namespace
