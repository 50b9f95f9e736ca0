// The loop over the micro-batches of a step: sums of loss and gradients.
#include "dialects/Flow/IR/FlowAttrs.h"
#include "lib/Training/GenericBuilders.h"
#include "lib/Training/Passes.h"
#include "lib/Training/ProgramSignature.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace flow::training {
#define GEN_PASS_DEF_LOOPMICROBATCHES
#include "lib/Training/Passes.h.inc"

namespace {

// Does `op` add to what its only init holds?
bool accumulates(linalg::LinalgOp op) {
  if (op.getNumDpsInits() != 1)
    return false;
  BlockArgument acc = op.getMatchingBlockArgument(op.getDpsInitOperand(0));
  Operation *last = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  return last && isa<arith::AddFOp>(last) && acc.hasOneUse() && *acc.user_begin() == last;
}

// The zeros at the start of the chain of accumulations that ends in `v`, if nobody else sees the
// chain's partial sums.
OpOperand *zerosUnder(Value v) {
  OpOperand *init = nullptr;
  while (auto op = v.getDefiningOp<linalg::LinalgOp>()) {
    if (!v.hasOneUse())
      return nullptr;
    if (auto fill = dyn_cast<linalg::FillOp>(op.getOperation()))
      return matchPattern(fill.value(), m_AnyZeroFloat()) ? init : nullptr;
    if (!accumulates(op))
      return nullptr;
    init = op.getDpsInitOperand(0);
    v = init->get();
    // a fill may be shared: it is only read
    if (auto fill = v.getDefiningOp<linalg::FillOp>())
      return matchPattern(fill.value(), m_AnyZeroFloat()) ? init : nullptr;
  }
  return nullptr;
}

Value accumulate(OpBuilder &b, Value sum, Value v) {
  Type wide = tensorTypeOf(sum).getElementType();
  OpOperand *init = zerosUnder(v);
  if (init && v.getType() == sum.getType()) {
    init->set(sum);
    return v;
  }
  Value r = elementwise(
      b, v.getLoc(), {sum, v}, wide, [&](OpBuilder &nb, Location l, ValueRange a) -> Value {
        return arith::AddFOp::create(nb, l, a[0], convertFloat(nb, l, a[1], wide));
      });
  if (Operation *def = v.getDefiningOp(); def && def->hasAttr(kPhase))
    r.getDefiningOp()->setAttr(kPhase, def->getAttr(kPhase));
  return r;
}

struct LoopMicroBatches : impl::LoopMicroBatchesBase<LoopMicroBatches> {
  using LoopMicroBatchesBase::LoopMicroBatchesBase;
  LogicalResult addLoop(func::FuncOp step);
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>("step");
    if (!step || step.isExternal()) {
      getOperation().emitError("there is no function @step");
      return signalPassFailure();
    }
    if (microBatches < 1) {
      step.emitError("expected at least one micro-batch, got ") << microBatches.getValue();
      return signalPassFailure();
    }
    if (microBatches > 1 && failed(addLoop(step)))
      signalPassFailure();
  }
};

// A leading dim for what comes with each batch, and its slice at `at` in the loop.
void sliceArguments(OpBuilder &b, func::FuncOp step, Value at, int64_t count) {
  for (BlockArgument a : step.getArguments()) {
    StringRef kind = argumentKind(step, a.getArgNumber());
    if (kind != "input" && kind != "label")
      continue;
    RankedTensorType type = tensorTypeOf(a);
    SmallVector<int64_t> shape{count};
    llvm::append_range(shape, type.getShape());
    a.setType(type.clone(shape));
    if (a.use_empty())
      continue;
    SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(shape.size(), b.getIndexAttr(1));
    offsets[0] = at;
    shape[0] = 1;
    SmallVector<OpFoldResult> sizes = getAsIndexOpFoldResult(b.getContext(), shape);
    auto slice = tensor::ExtractSliceOp::create(b, a.getLoc(), type, a, offsets, sizes, strides);
    a.replaceAllUsesExcept(slice, slice);
  }
}

LogicalResult LoopMicroBatches::addLoop(func::FuncOp step) {
  for (Type t : step.getResultTypes())
    if (!isFloatTensor(t) || !isStaticTensor(t))
      return step.emitError("cannot add up a result of type ") << t << " over micro-batches";
  Block &block = step.getBody().front();
  auto ret = cast<func::ReturnOp>(block.getTerminator());
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  OpBuilder b = OpBuilder::atBlockBegin(&block);
  Location loc = NameLoc::get(b.getStringAttr("micro-batches"));
  Value zero = scalarConstant(b, loc, b.getIndexType(), 0);
  Value one = scalarConstant(b, loc, b.getIndexType(), 1);
  Value end = scalarConstant(b, loc, b.getIndexType(), microBatches);
  SmallVector<Value> sums;
  for (Value v : ret.getOperands()) {
    RankedTensorType type = tensorTypeOf(v);
    sums.push_back(filled(b, v.getLoc(), type.clone(accumulatorType(type.getElementType())), 0));
  }
  auto loop = scf::ForOp::create(b, loc, zero, end, one, sums);
  Block *body = loop.getBody();
  for (Operation *op : ops)
    op->moveBefore(body, body->end());
  OpBuilder inner = OpBuilder::atBlockBegin(body);
  sliceArguments(inner, step, loop.getInductionVar(), microBatches);
  inner.setInsertionPointToEnd(body);
  SmallVector<Value> yields;
  for (auto [sum, v] : llvm::zip_equal(loop.getRegionIterArgs(), ret.getOperands()))
    yields.push_back(accumulate(inner, sum, v));
  scf::YieldOp::create(inner, loc, yields);
  ret.getOperandsMutable().assign(loop.getResults());
  step.setType(b.getFunctionType(TypeRange(block.getArguments()), loop.getResultTypes()));
  return success();
}

} // namespace
} // namespace flow::training
