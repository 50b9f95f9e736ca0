// Activity, cotangents and the sweep. The rules are in the files beside this one.
#include "lib/Training/Gradients/Reverse.h"
#include "dialects/Flow/IR/FlowAttrs.h"
#include "lib/Training/GenericBuilders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace flow::training {

InFlightDiagnostic noGradient(Operation *op) {
  return emitError(op->getLoc(), "there is no gradient of ");
}

bool isFloat(Value v) {
  return isa<FloatType>(getElementTypeOrSelf(v.getType()));
}

SmallVector<Operation *> opsOf(Block &block) {
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  return ops;
}

SmallVector<Value> activeCaptures(Operation *op, const ActiveValues &active) {
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(op->getRegions(), captures);
  return llvm::filter_to_vector(captures, [&](Value v) { return active.contains(v); });
}

void markActive(ArrayRef<Operation *> ops, ActiveValues &active) {
  for (Operation *op : ops) {
    if (op->hasAttr(kStopGradient))
      continue;
    bool reached = llvm::any_of(op->getOperands(), [&](Value v) { return active.contains(v); }) ||
                   !activeCaptures(op, active).empty();
    if (!reached)
      continue;
    for (Value result : op->getResults())
      if (isFloat(result))
        active.insert(result);
    if (isa<linalg::LinalgOp, tensor::PadOp, tensor::GenerateOp>(op))
      continue;
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        for (Value a : block.getArguments())
          if (isFloat(a))
            active.insert(a);
        markActive(opsOf(block), active);
      }
  }
}

void Reverse::add(Value v, Value g) {
  if (!isActive(v))
    return;
  Value &slot = adjoints[v];
  if (!slot)
    slot = g;
  else if (isa<FloatType>(g.getType()))
    slot = arith::AddFOp::create(b, g.getLoc(), slot, g);
  else
    slot = addTensors(b, g.getLoc(), slot, g);
}

Value Reverse::lookupOrZero(Value v) {
  Value g = lookup(v);
  return g ? g : zeroLike(v);
}

Value Reverse::zeroLike(Value v) {
  if (auto type = dyn_cast<RankedTensorType>(v.getType()))
    return filled(b, v.getLoc(), type, 0, v);
  return scalarConstant(b, v.getLoc(), v.getType(), 0);
}

LogicalResult Reverse::reverse(ArrayRef<Operation *> ops) {
  for (Operation *op : llvm::reverse(ops)) {
    if (op->hasAttr(kStopGradient))
      continue;
    bool reached = llvm::any_of(op->getResults(), [&](Value v) { return adjoints.contains(v); });
    bool carries = llvm::any_of(op->getResults(), [&](Value v) { return isActive(v); });
    if (reached && carries && failed(reverseOp(op)))
      return failure();
  }
  return success();
}

LogicalResult Reverse::reverseOp(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](scf::ForOp o) { return reverseFor(o); })
      .Case([&](scf::IfOp o) { return reverseIf(o); })
      .Case([&](scf::WhileOp o) {
        return noGradient(o) << "a loop whose trip count is not known before it runs";
      })
      .Case([&](linalg::SoftmaxOp o) { return reverseSoftmax(o); })
      .Case([&](linalg::FillOp o) { return reverseFill(o); })
      .Case([&](linalg::LinalgOp o) { return reverseLinalg(o); })
      .Case([&](func::CallOp o) {
        return noGradient(o) << "a call of @" << o.getCallee() << "; inline it first";
      })
      .Default([&](Operation *o) { return reverseTensorOp(o); });
}

static void tagBackward(Block &block, Operation *after) {
  Attribute phase = PhaseAttr::get(after->getContext(), Phase::Backward);
  for (Operation *op = after->getNextNode(); op != block.getTerminator(); op = op->getNextNode())
    op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
      if (!inner->hasTrait<OpTrait::IsTerminator>())
        inner->setAttr("flow.phase", phase);
      return isa<linalg::LinalgOp>(inner) ? WalkResult::skip() : WalkResult::advance();
    });
}

FailureOr<SmallVector<Value>> buildGradients(Block &block, ArrayRef<GradientSeed> seeds,
                                             ArrayRef<Value> wrt) {
  OpBuilder b(block.getTerminator());
  SweepState state;
  state.active.insert(wrt.begin(), wrt.end());
  SmallVector<Operation *> ops = opsOf(block);
  markActive(ops, state.active);
  // the sweep may replace forward loops: remember where it starts by an op of its own
  Operation *start = arith::ConstantIndexOp::create(b, b.getUnknownLoc(), 0);
  Reverse reverse(b, state);
  for (const GradientSeed &seed : seeds)
    reverse.add(seed.value, seed.cotangent);
  LogicalResult done = reverse.reverse(ops);
  tagBackward(block, start);
  start->erase();
  for (Operation *op : state.replaced)
    op->erase();
  if (failed(done))
    return failure();
  return llvm::map_to_vector(wrt, [&](Value v) { return reverse.lookup(v); });
}

} // namespace flow::training
