// Result types of flow.operators, and evaluation of those on small constants.
#include "lib/Legalize/ONNX/OperatorRegistry.h"
#include "lib/Legalize/ONNX/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace flow {
#define GEN_PASS_DEF_INFERSHAPES
#include "lib/Legalize/ONNX/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;
using namespace flow::onnx_rules;

namespace {
struct InferShapes : flow::impl::InferShapesBase<InferShapes> {
  void runOnOperation() override;

private:
  LogicalResult infer(OperatorOp op, const OperatorRegistry &registry);
  void updateFunction(func::FuncOp function);
};
} // namespace

static bool hasStaticOperands(OperatorOp op) {
  return llvm::all_of(op.getOperandTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return isa<NoneType>(type) || (tensor && tensor.hasStaticShape());
  });
}

LogicalResult InferShapes::infer(OperatorOp op, const OperatorRegistry &registry) {
  const OperatorRule *rule =
      registry.lookup(op.getOperatorName(), static_cast<int64_t>(op.getVersion()));
  if (!rule || !hasStaticOperands(op))
    return success();
  Node node(op);
  for (unsigned i = 0; i < rule->minInputs; ++i)
    if (!node.has(i))
      return mlir::emitError(op.getLoc(),
                             describeOperator(node) + ": operand " + Twine(i) + " is missing");
  Types types = rule->infer(node);
  if (failed(types)) {
    // What is not supported is reported by legalization, all of it at once.
    return node.isWrong ? LogicalResult(mlir::emitError(op.getLoc(), describeOperator(node) + ": " +
                                                                         node.reason))
                        : success();
  }
  if (types->size() < op.getNumResults())
    return mlir::emitError(op.getLoc(), describeOperator(node) + ": expected at most " +
                                            Twine(types->size()) + " results, got " +
                                            Twine(op.getNumResults()));
  for (auto [result, type] : llvm::zip(op.getResults(), *types))
    result.setType(type);
  if (!rule->fold)
    return success();
  Folded folded = rule->fold(node);
  if (folded.size() != op.getNumResults())
    return success();
  OpBuilder b(op);
  for (auto [result, elements] : llvm::zip(op.getResults(), folded))
    result.replaceAllUsesWith(arith::ConstantOp::create(b, op.getLoc(), elements));
  op.erase();
  return success();
}

void InferShapes::updateFunction(func::FuncOp function) {
  auto terminator = function.front().getTerminator();
  function.setType(FunctionType::get(&getContext(), function.front().getArgumentTypes(),
                                     terminator->getOperandTypes()));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (auto type = dyn_cast<RankedTensorType>(function.getResultTypes()[i]);
        type && type.hasStaticShape())
      function.removeResultAttr(i, StringAttr::get(&getContext(), "flow.dims"));
}

void InferShapes::runOnOperation() {
  OperatorRegistry registry;
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    for (Operation &op : llvm::make_early_inc_range(function.front()))
      if (auto node = dyn_cast<OperatorOp>(op))
        if (failed(infer(node, registry)))
          return signalPassFailure();
    updateFunction(function);
    // Shape arithmetic that folded leaves constants behind that nobody reads.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
}
