// Replaces flow.operators by their lowerings; reports all that have none at once.
#include "lib/Legalize/ONNX/OperatorRegistry.h"
#include "lib/Legalize/ONNX/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace flow {
#define GEN_PASS_DEF_LEGALIZEONNX
#include "lib/Legalize/ONNX/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;
using namespace flow::onnx_rules;

namespace {
struct LegalizeOnnx : flow::impl::LegalizeOnnxBase<LegalizeOnnx> {
  void runOnOperation() override;

private:
  LogicalResult legalizeFunction(func::FuncOp function);
  LogicalResult lowerOperator(OperatorOp op);
  LogicalResult reportUnsupported();
  void checkArguments(func::FuncOp function);
  void makeSignless(func::FuncOp function);

  const OperatorRegistry *registry = nullptr;
  IRMapping lowered;
  SmallVector<std::string> unsupported;
  size_t openDims = 0; // how many of them a flag would fix
};
} // namespace

static bool isStatic(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape();
}

/// The dynamic dims of inputs: the user can fix them.
void LegalizeOnnx::checkArguments(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    if (isStatic(argument.getType()) || !isa<TensorType>(argument.getType()))
      continue;
    auto name = function.getArgAttrOfType<StringAttr>(i, "flow.name");
    std::string where = "input '" + (name ? name.str() : "#" + std::to_string(i)) + "': ";
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type) {
      unsupported.push_back(where + "its rank is not known");
      continue;
    }
    auto names = function.getArgAttrOfType<ArrayAttr>(i, "flow.dims");
    for (int64_t d = 0; d < type.getRank(); ++d) {
      if (!type.isDynamicDim(d))
        continue;
      ++openDims;
      StringRef dim = names && d < static_cast<int64_t>(names.size())
                          ? cast<StringAttr>(names[d]).getValue()
                          : "";
      if (dim.empty())
        unsupported.push_back(
            where + "dim " + std::to_string(d) + " is dynamic" +
            (d == 0 ? "; fix it with --batch=N" : "; it has no name to fix it by"));
      else
        unsupported.push_back(where + "dim " + std::to_string(d) +
                              " is dynamic; fix it with --dim " + dim.str() + "=N" +
                              (d == 0 ? " or --batch=N" : ""));
    }
  }
}

LogicalResult LegalizeOnnx::lowerOperator(OperatorOp op) {
  Node node(op, &lowered);
  auto notSupported = [&](const Twine &why) {
    unsupported.push_back((describeNode(node) + (why.isTriviallyEmpty() ? "" : ": ") + why).str());
    return success(); // go on, to report the others as well
  };
  const OperatorRule *rule = registry->lookup(op.getOperatorName(), node.version());
  if (!rule)
    return notSupported("");
  bool operandsLowered = true;
  for (unsigned i = 0; i < node.numInputs(); ++i) {
    if (!node.has(i))
      continue;
    if (!isStatic(op.getInputs()[i].getType()) || !lowered.contains(op.getInputs()[i]))
      operandsLowered = false;
  }
  // What feeds it was reported already.
  if (!operandsLowered)
    return success();
  for (unsigned i = 0; i < rule->minInputs; ++i)
    if (!node.has(i))
      return mlir::emitError(op.getLoc(),
                             describeOperator(node) + ": operand " + Twine(i) + " is missing");
  Types types = rule->infer(node);
  Lowered values = failure();
  if (succeeded(types)) {
    for (auto [result, type] : llvm::zip(op.getResults(), *types))
      if (isStatic(type))
        result.setType(type);
    ImplicitLocOpBuilder b(op.getLoc(), op);
    values = rule->lower(node, b);
  }
  if (failed(values))
    return node.isWrong ? LogicalResult(mlir::emitError(op.getLoc(), describeOperator(node) + ": " +
                                                                         node.reason))
                        : notSupported(node.reason);
  for (auto [result, value] : llvm::zip(op.getResults(), *values)) {
    if (!value)
      continue;
    if (value.getType() != signlessType(result.getType()))
      return notSupported("its lowering gives another type than its inference");
    lowered.map(Value(result), value);
  }
  return success();
}

LogicalResult LegalizeOnnx::reportUnsupported() {
  if (unsupported.empty())
    return success();
  bool flagsSuffice = openDims == unsupported.size();
  getOperation()->setAttr("flow.failure",
                          StringAttr::get(&getContext(), flagsSuffice ? "usage" : "unsupported"));
  if (flagsSuffice)
    return mlir::emitError(UnknownLoc::get(&getContext()), llvm::join(unsupported, "\n"));
  std::string list;
  for (const std::string &line : unsupported)
    list += "\n  " + line;
  return mlir::emitError(UnknownLoc::get(&getContext()),
                         "not supported (" + Twine(unsupported.size()) + "):" + list);
}

/// Gives arguments signless types; operators still see the old ones.
void LegalizeOnnx::makeSignless(func::FuncOp function) {
  for (auto global : getOperation().getOps<ml_program::GlobalOp>()) {
    auto type = dyn_cast<RankedTensorType>(global.getType());
    if (!type || signlessType(type) == type || !global.getValue())
      continue;
    auto wanted = cast<RankedTensorType>(signlessType(type));
    if (auto dense = dyn_cast<DenseElementsAttr>(*global.getValue()))
      global.setValueAttr(dense.bitcast(wanted.getElementType()));
    else if (auto weights = dyn_cast<WeightsAttr>(*global.getValue()))
      global.setValueAttr(WeightsAttr::get(&getContext(), weights.getFile(),
                                           weights.getOffsetInBytes(), weights.getSizeInBytes(),
                                           wanted));
    global.setType(wanted);
    global->setAttr("flow.unsigned", UnitAttr::get(&getContext()));
  }
  Block &body = function.front();
  for (unsigned i = 0, e = body.getNumArguments(); i < e; ++i) {
    BlockArgument argument = body.getArgument(i);
    lowered.map(Value(argument), Value(argument));
    if (signlessType(argument.getType()) == argument.getType())
      continue;
    lowered.map(Value(argument),
                Value(body.addArgument(signlessType(argument.getType()), argument.getLoc())));
    function.setArgAttr(i, "flow.unsigned", UnitAttr::get(&getContext()));
  }
}

LogicalResult LegalizeOnnx::legalizeFunction(func::FuncOp function) {
  lowered.clear();
  checkArguments(function);
  Block &body = function.front();
  unsigned numArguments = body.getNumArguments();
  makeSignless(function);
  SmallVector<Operation *> dead;
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (auto node = dyn_cast<OperatorOp>(op)) {
      if (failed(lowerOperator(node)))
        return failure();
      dead.push_back(node);
      continue;
    }
    if (isa<AbsentOp>(op)) {
      dead.push_back(&op);
      continue;
    }
    // Loads and constants of unsigned type get a signless twin; others stand for themselves.
    for (Value result : op.getResults()) {
      lowered.map(result, result);
      if (signlessType(result.getType()) == result.getType())
        continue;
      OpBuilder b(&op);
      if (auto constant = dyn_cast<arith::ConstantOp>(op))
        lowered.map(
            result,
            Value(arith::ConstantOp::create(
                b, op.getLoc(),
                cast<DenseElementsAttr>(constant.getValue())
                    .bitcast(
                        cast<RankedTensorType>(signlessType(result.getType())).getElementType()))));
      else if (auto load = dyn_cast<ml_program::GlobalLoadConstOp>(op))
        lowered.map(result,
                    Value(ml_program::GlobalLoadConstOp::create(
                        b, op.getLoc(), signlessType(result.getType()), load.getGlobalAttr())));
      dead.push_back(&op);
    }
  }
  if (!unsupported.empty())
    return success();
  Operation *terminator = body.getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    if (signlessType(operand.get().getType()) != operand.get().getType())
      function.setResultAttr(operand.getOperandNumber(), "flow.unsigned",
                             UnitAttr::get(&getContext()));
    operand.set(lowered.lookup(operand.get()));
  }
  for (Operation *op : llvm::reverse(dead))
    op->erase();
  // The signless arguments stand after the old ones, in order: move them into place.
  unsigned next = numArguments;
  for (unsigned i = 0; i < numArguments; ++i) {
    if (signlessType(body.getArgument(i).getType()) == body.getArgument(i).getType())
      continue;
    body.getArgument(i).setType(signlessType(body.getArgument(i).getType()));
    body.getArgument(next++).replaceAllUsesWith(body.getArgument(i));
  }
  body.eraseArguments(numArguments, body.getNumArguments() - numArguments);
  function.setType(
      FunctionType::get(&getContext(), body.getArgumentTypes(), terminator->getOperandTypes()));
  return success();
}

void LegalizeOnnx::runOnOperation() {
  OperatorRegistry rules;
  registry = &rules;
  unsupported.clear();
  openDims = 0;
  for (auto function : getOperation().getOps<func::FuncOp>())
    if (!function.isExternal() && failed(legalizeFunction(function)))
      return signalPassFailure();
  if (failed(reportUnsupported()))
    return signalPassFailure();
  for (auto function : getOperation().getOps<func::FuncOp>())
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
}
