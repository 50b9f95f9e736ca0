// Reverse of loops and branches.
#include "lib/Training/GenericBuilders.h"
#include "lib/Training/Gradients/Reverse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace flow::training {
namespace {

// One carried value per iteration: a tensor with a leading dim that counts iterations.
class Stack {
public:
  Stack(OpBuilder &b, Location loc, OpFoldResult iterations, Value like)
      : loc(loc), type(like.getType()), like(like) {
    SmallVector<OpFoldResult> sizes{iterations};
    if (isa<RankedTensorType>(type))
      llvm::append_range(sizes, tensor::getMixedSizes(b, loc, like));
    empty = tensor::EmptyOp::create(b, loc, sizes, getElementTypeOrSelf(type));
  }
  Value push(OpBuilder &b, Value into, Value v, Value at) const {
    if (!isa<RankedTensorType>(type))
      return tensor::InsertOp::create(b, loc, v, into, at);
    auto [offsets, sizes, strides] = slot(b, v, at);
    return tensor::InsertSliceOp::create(b, loc, v, into, offsets, sizes, strides);
  }
  Value read(OpBuilder &b, Value from, Value at) const {
    auto tensorType = dyn_cast<RankedTensorType>(type);
    if (!tensorType)
      return tensor::ExtractOp::create(b, loc, from, at);
    auto [offsets, sizes, strides] = slot(b, like, at);
    return tensor::ExtractSliceOp::create(b, loc, tensorType, from, offsets, sizes, strides);
  }

  Value empty;

private:
  using Sizes = SmallVector<OpFoldResult>;
  std::tuple<Sizes, Sizes, Sizes> slot(OpBuilder &b, Value v, Value at) const {
    size_t rank = tensorTypeOf(v).getRank() + 1;
    Sizes offsets(rank, b.getIndexAttr(0)), sizes{b.getIndexAttr(1)},
        strides(rank, b.getIndexAttr(1));
    offsets[0] = at;
    llvm::append_range(sizes, tensor::getMixedSizes(b, loc, v));
    return {offsets, sizes, strides};
  }
  Location loc;
  Type type;
  Value like;
};

// The forward loop with a stack per carried value.
struct TapedLoop {
  scf::ForOp forward;
  SmallVector<Stack> stacks;
  Value iterations;
};

TapedLoop tape(scf::ForOp op) {
  Location loc = op.getLoc();
  OpBuilder b(op);
  Value lower = op.getLowerBound(), step = op.getStep();
  Value extent = b.createOrFold<arith::SubIOp>(loc, op.getUpperBound(), lower);
  Value zero = scalarConstant(b, loc, extent.getType(), 0);
  extent = b.createOrFold<arith::MaxSIOp>(loc, extent, zero);
  TapedLoop t;
  t.iterations = b.createOrFold<arith::CeilDivSIOp>(loc, extent, step);
  SmallVector<Value> inits(op.getInitArgs());
  for (Value init : op.getInitArgs()) {
    t.stacks.emplace_back(b, loc, getAsOpFoldResult(t.iterations), init);
    inits.push_back(t.stacks.back().empty);
  }
  t.forward = scf::ForOp::create(b, loc, lower, op.getUpperBound(), step, inits);
  t.forward->setDiscardableAttrs(op->getDiscardableAttrDictionary());

  OpBuilder body = OpBuilder::atBlockBegin(t.forward.getBody());
  Value at = body.createOrFold<arith::SubIOp>(loc, t.forward.getInductionVar(), lower);
  at = body.createOrFold<arith::DivSIOp>(loc, at, step);
  IRMapping map;
  map.map(op.getInductionVar(), t.forward.getInductionVar());
  size_t carried = op.getInitArgs().size();
  SmallVector<Value> pushed;
  for (auto [i, stack] : llvm::enumerate(t.stacks)) {
    Value v = t.forward.getRegionIterArg(i);
    map.map(op.getRegionIterArg(i), v);
    pushed.push_back(stack.push(body, t.forward.getRegionIterArg(carried + i), v, at));
  }
  for (Operation &o : op.getBody()->without_terminator())
    body.clone(o, map);
  SmallVector<Value> yields;
  for (Value v : op.getBody()->getTerminator()->getOperands())
    yields.push_back(map.lookupOrDefault(v));
  llvm::append_range(yields, pushed);
  scf::YieldOp::create(body, loc, yields);
  return t;
}

} // namespace

// Forward: push the carried values of every iteration. Backward: pop, redo the body, run its
// reverse sweep; gradients of captured values are carried along and accumulate in place.
LogicalResult Reverse::reverseFor(scf::ForOp op) {
  Location loc = op.getLoc();
  if (!op.getInductionVar().getType().isIndex())
    return noGradient(op) << "a loop that counts in " << op.getInductionVar().getType()
                          << "; expected index";
  SmallVector<Value> captures = activeCaptures(op, state.active);
  SmallVector<unsigned> floats; // carried values with a gradient
  for (auto [i, v] : llvm::enumerate(op.getRegionIterArgs()))
    if (isFloat(v))
      floats.push_back(i);
  TapedLoop taped = tape(op);
  size_t carried = op.getInitArgs().size();

  SmallVector<Value> seeds;
  for (unsigned i : floats) {
    Value g = lookup(op.getResult(i));
    seeds.push_back(g ? g : zeroLike(op.getInitArgs()[i]));
  }
  for (Value c : captures)
    seeds.push_back(lookupOrZero(c));
  Value zero = scalarConstant(b, loc, b.getIndexType(), 0);
  Value one = scalarConstant(b, loc, b.getIndexType(), 1);
  auto backward = scf::ForOp::create(b, loc, zero, taped.iterations, one, seeds);

  OpBuilder body = OpBuilder::atBlockBegin(backward.getBody());
  Value last = arith::SubIOp::create(body, loc, taped.iterations, one);
  Value at = arith::SubIOp::create(body, loc, last, backward.getInductionVar());
  Value scaled = arith::MulIOp::create(body, loc, at, op.getStep());
  IRMapping map;
  map.map(op.getInductionVar(),
          arith::AddIOp::create(body, loc, op.getLowerBound(), scaled).getResult());
  SmallVector<Value> popped;
  for (auto [i, stack] : llvm::enumerate(taped.stacks)) {
    popped.push_back(stack.read(body, taped.forward.getResult(carried + i), at));
    map.map(op.getRegionIterArg(i), popped.back());
    if (isFloat(popped.back()))
      state.active.insert(popped.back());
  }
  SmallVector<Operation *> ops;
  for (Operation &o : op.getBody()->without_terminator())
    ops.push_back(body.clone(o, map));
  markActive(ops, state.active);
  Reverse inner(body, state);
  for (auto [i, c] : llvm::enumerate(captures))
    inner.set(c, backward.getRegionIterArg(floats.size() + i));
  Operation *yield = op.getBody()->getTerminator();
  for (auto [i, k] : llvm::enumerate(floats))
    inner.add(map.lookupOrDefault(yield->getOperand(k)), backward.getRegionIterArg(i));
  if (failed(inner.reverse(ops)))
    return failure();
  SmallVector<Value> yields;
  for (unsigned i : floats)
    yields.push_back(inner.lookupOrZero(popped[i]));
  for (Value c : captures)
    yields.push_back(inner.lookup(c));
  scf::YieldOp::create(body, loc, yields);

  // captures first: a captured value may be an initial value, too
  for (auto [i, c] : llvm::enumerate(captures))
    set(c, backward.getResult(floats.size() + i));
  for (auto [i, k] : llvm::enumerate(floats))
    add(op.getInitArgs()[k], backward.getResult(i));
  op.replaceAllUsesWith(taped.forward.getResults().take_front(carried));
  state.replaced.push_back(op);
  return success();
}

LogicalResult Reverse::reverseIf(scf::IfOp op) {
  Location loc = op.getLoc();
  SmallVector<Value> captures = activeCaptures(op, state.active);
  if (captures.empty())
    return success();
  SmallVector<Type> types(ValueRange(captures).getTypes());
  auto backward = scf::IfOp::create(b, loc, types, op.getCondition(), /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
  for (auto [from, to] : {std::pair{op.thenBlock(), backward.thenBlock()},
                          std::pair{op.elseBlock(), backward.elseBlock()}}) {
    OpBuilder body = OpBuilder::atBlockEnd(to);
    IRMapping map;
    SmallVector<Operation *> ops;
    for (Operation &o : from->without_terminator())
      ops.push_back(body.clone(o, map));
    markActive(ops, state.active);
    Reverse inner(body, state);
    for (auto [result, v] : llvm::zip_equal(op.getResults(), from->getTerminator()->getOperands()))
      if (Value g = lookup(result))
        inner.add(map.lookupOrDefault(v), g);
    if (failed(inner.reverse(ops)))
      return failure();
    SmallVector<Value> yields;
    for (Value c : captures)
      yields.push_back(inner.lookupOrZero(c));
    scf::YieldOp::create(body, loc, yields);
  }
  for (auto [c, g] : llvm::zip_equal(captures, backward.getResults()))
    add(c, g);
  return success();
}

} // namespace flow::training
