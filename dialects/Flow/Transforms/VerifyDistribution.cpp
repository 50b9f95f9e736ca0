// --flow-verify-distribution: what later phases may assume about a placed program.
#include "dialects/Flow/IR/FlowOps.h"
#include "dialects/Flow/Rules/Signature.h"
#include "dialects/Flow/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace flow {
#define GEN_PASS_DEF_VERIFYDISTRIBUTION
#include "dialects/Flow/Transforms/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

static bool isTensor(Type type) {
  return isa<TensorType>(type);
}

/// States keep their type from step to step and from function to function.
static LogicalResult verifyStates(func::FuncOp function, llvm::DenseMap<Attribute, Type> &states) {
  auto nameOf = [&](unsigned i) {
    auto name = function.getArgAttrOfType<StringAttr>(i, "flow.name");
    return name ? name.getValue() : StringRef("?");
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    Attribute initial = function.getArgAttr(i, "flow.initial");
    if (!initial)
      continue;
    Type type = function.getArgumentTypes()[i];
    auto [it, isNew] = states.try_emplace(initial, type);
    if (it->second != type)
      return function.emitOpError("state '") << nameOf(i) << "' is held as " << type
                                             << ", another function holds it as " << it->second;
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto tied = function.getResultAttrOfType<IntegerAttr>(i, "flow.tied");
    if (!tied)
      continue;
    Type result = function.getResultTypes()[i],
         argument = function.getArgumentTypes()[tied.getInt()];
    if (result != argument)
      return function.emitOpError("state '")
             << nameOf(tied.getInt()) << "' comes back as " << result << ", expected " << argument;
  }
  return success();
}

static LogicalResult verifyOp(Operation *op) {
  if (auto compute = dyn_cast<ComputeOp>(op))
    return failure(failed(inferCompute(compute)));
  auto isDist = [](Type type) { return isa<DistType>(type); };
  bool touches =
      llvm::any_of(op->getOperandTypes(), isDist) || llvm::any_of(op->getResultTypes(), isDist);
  if (llvm::any_of(op->getOperandTypes(), isTensor) || llvm::any_of(op->getResultTypes(), isTensor))
    return op->emitOpError("works on a tensor outside of flow.compute");
  if (touches && !isa<BoxingOp, func::ReturnOp, func::CallOp, scf::ForOp, scf::IfOp, scf::WhileOp,
                      scf::YieldOp, scf::ConditionOp>(op))
    return op->emitOpError("touches a distributed value, but only flow.compute computes and only "
                           "flow.boxing moves data");
  return success();
}

namespace {
struct VerifyDistribution : flow::impl::VerifyDistributionBase<VerifyDistribution> {
  void runOnOperation() override {
    llvm::DenseMap<Attribute, Type> states;
    bool ok = true;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (llvm::none_of(function.getArgumentTypes(), llvm::IsaPred<DistType>))
        continue;
      ok &= succeeded(verifyStates(function, states));
      function.walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (op == function)
          return WalkResult::advance();
        ok &= succeeded(verifyOp(op));
        return isa<ComputeOp>(op) ? WalkResult::skip() : WalkResult::advance();
      });
    }
    if (!ok)
      signalPassFailure();
  }
};
} // namespace
