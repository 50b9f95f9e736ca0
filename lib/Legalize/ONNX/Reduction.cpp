// ReduceSum and its kin, ArgMax and ArgMin, CumSum.
#include "lib/Legalize/ONNX/BroadcastBuilder.h"
#include "lib/Legalize/ONNX/ConstantElements.h"
#include "lib/Legalize/ONNX/ReductionBuilder.h"
#include "lib/Legalize/ONNX/ReshapeBuilder.h"
#include "lib/Legalize/ONNX/ScalarMath.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

/// The axes of a reduction: all, unless it names some or is told to take none as such.
static FailureOr<SmallVector<int64_t>> reducedAxes(Node &node) {
  bool failedToRead;
  auto given = node.integersFrom("axes", 1, failedToRead);
  if (failedToRead)
    return failure();
  if (!given || given->empty()) {
    if (node.integer("noop_with_empty_axes", 0))
      return SmallVector<int64_t>();
    return llvm::to_vector(llvm::seq<int64_t>(0, node.rank(0)));
  }
  return node.axes(*given, node.rank(0));
}

static SmallVector<int64_t> reducedShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> axes,
                                         bool keepDims) {
  SmallVector<int64_t> result;
  for (auto [d, extent] : llvm::enumerate(shape)) {
    if (!llvm::is_contained(axes, static_cast<int64_t>(d)))
      result.push_back(extent);
    else if (keepDims)
      result.push_back(1);
  }
  return result;
}

static Types inferReduce(Node &node) {
  auto axes = reducedAxes(node);
  if (failed(axes))
    return failure();
  return oneType(node, reducedShape(node.shape(0), *axes, node.integer("keepdims", 1)),
                 node.element(0));
}

namespace {
/// before(x) combined along the axes, then after(result).
struct ReduceKind {
  Combiner combiner = Combiner::Sum;
  Value (*before)(B &, Value, bool isUnsigned) = nullptr;
  /// `count` elements were combined.
  Value (*after)(B &, Value, double count, bool isUnsigned) = nullptr;
};
} // namespace

static Lowered lowerReduce(Node &node, B &b, ReduceKind kind) {
  auto axes = reducedAxes(node);
  Type element = signlessType(node.element(0)), wide = wideType(element);
  bool isUnsigned = node.isUnsigned(0);
  if (!isa<FloatType>(element) && kind.after && !element.isInteger(32) && !element.isInteger(64))
    return LogicalResult(node.unsupported("elements of this type"));
  double count = 1;
  for (int64_t axis : *axes)
    count *= node.shape(0)[axis];
  Value x = castFloats(b, node.input(0), wide);
  if (kind.before)
    x = elementwise(b, x, wide,
                    [&](B &ib, ValueRange v) { return kind.before(ib, v[0], isUnsigned); });
  x = reduce(b, x, *axes, node.integer("keepdims", 1), kind.combiner, isUnsigned);
  if (kind.after)
    x = elementwise(b, x, wide,
                    [&](B &ib, ValueRange v) { return kind.after(ib, v[0], count, isUnsigned); });
  return one(castFloats(b, x, element));
}

/// max(x) + log(sum(exp(x - max(x))))
static Lowered lowerLogSumExp(Node &node, B &b) {
  if (!node.isFloat(0))
    return LogicalResult(node.unsupported("expected floating-point elements"));
  auto axes = reducedAxes(node);
  Type element = node.element(0), wide = wideType(element);
  Value x = castFloats(b, node.input(0), wide);
  Value max = maximumAsShift(b, x, *axes);
  Value exponentials = elementwise(b, {x, max}, wide, [&](B &ib, ValueRange v) -> Value {
    // An infinite maximum must not be subtracted from itself.
    Value infinite =
        arith::CmpFOp::create(ib, arith::CmpFPredicate::OEQ, math::AbsFOp::create(ib, v[1]),
                              scalar(ib, wide, std::numeric_limits<double>::infinity()));
    Value shift = select(ib, infinite, scalar(ib, wide, 0), v[1]);
    return math::ExpOp::create(ib, arith::SubFOp::create(ib, v[0], shift));
  });
  Value sum = reduce(b, exponentials, *axes, /*keepDims=*/true, Combiner::Sum);
  Value result = elementwise(b, {sum, max}, wide, [&](B &ib, ValueRange v) -> Value {
    Value infinite =
        arith::CmpFOp::create(ib, arith::CmpFPredicate::OEQ, math::AbsFOp::create(ib, v[1]),
                              scalar(ib, wide, std::numeric_limits<double>::infinity()));
    Value shift = select(ib, infinite, scalar(ib, wide, 0), v[1]);
    return arith::AddFOp::create(ib, math::LogOp::create(ib, v[0]), shift);
  });
  return one(castFloats(b, reshape(b, result, node.resultType().getShape()), element));
}

static Folded foldReduce(Node &node, int64_t (*combineTwo)(int64_t, int64_t), int64_t neutral) {
  auto input = foldable(node, 0);
  auto result = emptyResult(node);
  auto axes = reducedAxes(node);
  if (!input || !result || input->isFloat() || failed(axes))
    return {};
  SmallVector<int64_t> kept = reducedShape(input->shape, *axes, /*keepDims=*/true);
  size_t size = 1;
  for (int64_t extent : kept)
    size *= extent;
  result->integers.assign(size, neutral);
  size_t i = 0;
  forEachIndex(input->shape, [&](ArrayRef<int64_t> index) {
    int64_t &to = result->integers[broadcastPosition(kept, index)];
    to = combineTwo(to, input->integers[i++]);
  });
  return {result->attribute()};
}

static Value absolute(B &b, Value x, bool isUnsigned) {
  if (isa<FloatType>(x.getType()))
    return math::AbsFOp::create(b, x);
  return isUnsigned ? x : Value(math::AbsIOp::create(b, x));
}

static Value square(B &b, Value x, bool) {
  return combine(b, Combiner::Product, x, x);
}

static Value divideByCount(B &b, Value x, double count, bool isUnsigned) {
  Value by = scalar(b, x.getType(), count);
  return isa<FloatType>(x.getType()) ? Value(arith::DivFOp::create(b, x, by))
                                     : divideIntegers(b, x, by, isUnsigned);
}

static Value viaFloat(B &b, Value x, bool isUnsigned, Value (*apply)(B &, Value)) {
  if (isa<FloatType>(x.getType()))
    return apply(b, x);
  Value real = castScalar(b, x, b.getF64Type(), isUnsigned, false);
  return castScalar(b, apply(b, real), x.getType(), false, isUnsigned);
}

static Value root(B &b, Value x, double, bool isUnsigned) {
  return viaFloat(b, x, isUnsigned,
                  [](B &ib, Value v) -> Value { return math::SqrtOp::create(ib, v); });
}

static Value logarithm(B &b, Value x, double, bool isUnsigned) {
  return viaFloat(b, x, isUnsigned,
                  [](B &ib, Value v) -> Value { return math::LogOp::create(ib, v); });
}

//===----------------------------------------------------------------------===//
// ArgMax and ArgMin
//===----------------------------------------------------------------------===//

static Types inferArg(Node &node) {
  auto axis = node.axis(node.integer("axis", 0), node.rank(0));
  if (failed(axis))
    return failure();
  if (node.shape(0)[*axis] == 0)
    return LogicalResult(node.wrong("the reduced dim is empty"));
  return oneType(node, reducedShape(node.shape(0), *axis, node.integer("keepdims", 1)),
                 IntegerType::get(node.op.getContext(), 64));
}

/// One generic with two results: the extremum so far and its place.
static Lowered lowerArg(Node &node, B &b, bool isMax) {
  int64_t axis = *node.axis(node.integer("axis", 0), node.rank(0));
  bool last = node.integer("select_last_index", 0), isUnsigned = node.isUnsigned(0);
  Type element = signlessType(node.element(0));
  unsigned rank = node.rank(0);
  SmallVector<int64_t> shape = reducedShape(node.shape(0), axis, /*keepDims=*/false);
  Combiner combiner = isMax ? Combiner::Max : Combiner::Min;
  SmallVector<Value> inits{filled(b, shape, neutralElement(combiner, element, isUnsigned)),
                           filled(b, shape, b.getI64IntegerAttr(0))};
  AffineMap identity = b.getMultiDimIdentityMap(rank), out = identity.dropResult(axis);
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators[axis] = utils::IteratorType::reduction;
  auto forFloats = isMax ? (last ? arith::CmpFPredicate::OGE : arith::CmpFPredicate::OGT)
                         : (last ? arith::CmpFPredicate::OLE : arith::CmpFPredicate::OLT);
  using I = arith::CmpIPredicate;
  I forIntegers = isUnsigned ? (isMax ? (last ? I::uge : I::ugt) : (last ? I::ule : I::ult))
                             : (isMax ? (last ? I::sge : I::sgt) : (last ? I::sle : I::slt));
  auto generic = linalg::GenericOp::create(
      b, TypeRange(ValueRange(inits)), node.input(0), inits,
      SmallVector<AffineMap>{identity, out, out}, iterators,
      [&](OpBuilder &inner, Location loc, ValueRange v) {
        ImplicitLocOpBuilder ib(loc, inner);
        Value here =
            arith::IndexCastOp::create(ib, ib.getI64Type(), linalg::IndexOp::create(ib, axis));
        Value better = compare(ib, forFloats, forIntegers, v[0], v[1]);
        linalg::YieldOp::create(
            ib, ValueRange{select(ib, better, v[0], v[1]), select(ib, better, here, v[2])});
      });
  return one(reshape(b, generic.getResult(1), node.resultType().getShape()));
}

//===----------------------------------------------------------------------===//
// CumSum
//===----------------------------------------------------------------------===//

static Types inferCumSum(Node &node) {
  auto axis = node.constantIntegers(1);
  if (!axis || axis->size() != 1)
    return LogicalResult(node.unsupported("operand 'axis' must be known at compile time"));
  if (failed(node.axis(axis->front(), node.rank(0))))
    return failure();
  return sameType(node);
}

/// y[i] = sum over j of x[j] where j <= i: a reduction over a masked second loop.
static Lowered lowerCumSum(Node &node, B &b) {
  int64_t axis = *node.axis(node.constantIntegers(1)->front(), node.rank(0));
  bool exclusive = node.integer("exclusive", 0), reverse = node.integer("reverse", 0);
  Type element = signlessType(node.element(0));
  unsigned rank = node.rank(0);
  Value init = filled(b, node.shape(0), neutralElement(Combiner::Sum, element));
  AffineMap out = AffineMap::getMultiDimIdentityMap(rank + 1, b.getContext()).getMajorSubMap(rank);
  SmallVector<AffineExpr> from(out.getResults());
  from[axis] = b.getAffineDimExpr(rank);
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  using I = arith::CmpIPredicate;
  I predicate = reverse ? (exclusive ? I::ugt : I::uge) : (exclusive ? I::ult : I::ule);
  auto generic = linalg::GenericOp::create(
      b, init.getType(), node.input(0), init,
      SmallVector<AffineMap>{AffineMap::get(rank + 1, 0, from, b.getContext()), out}, iterators,
      [&](OpBuilder &inner, Location loc, ValueRange v) {
        ImplicitLocOpBuilder ib(loc, inner);
        Value taken = arith::CmpIOp::create(ib, predicate, linalg::IndexOp::create(ib, rank),
                                            linalg::IndexOp::create(ib, axis));
        Value value = select(ib, taken, v[0], scalar(ib, element, 0));
        linalg::YieldOp::create(ib, combine(ib, Combiner::Sum, v[1], value));
      });
  return one(generic.getResult(0));
}

void flow::onnx_rules::addReductionRules(OperatorRegistry &registry) {
  auto add = [&](StringRef name, ReduceKind kind, int64_t (*fold)(int64_t, int64_t) = nullptr,
                 int64_t neutral = 0) {
    OperatorRule rule{.infer = inferReduce,
                      .lower = [kind](Node &node, B &b) { return lowerReduce(node, b, kind); }};
    if (fold)
      rule.fold = [=](Node &node) { return foldReduce(node, fold, neutral); };
    registry.add(name, 1, rule);
  };
  add("onnx.ReduceSum", {},
      [](int64_t x, int64_t y) { return int64_t(uint64_t(x) + uint64_t(y)); });
  add(
      "onnx.ReduceProd", {Combiner::Product},
      [](int64_t x, int64_t y) { return int64_t(uint64_t(x) * uint64_t(y)); }, 1);
  add(
      "onnx.ReduceMax", {Combiner::Max}, [](int64_t x, int64_t y) { return std::max(x, y); },
      INT64_MIN);
  add(
      "onnx.ReduceMin", {Combiner::Min}, [](int64_t x, int64_t y) { return std::min(x, y); },
      INT64_MAX);
  add("onnx.ReduceMean", {Combiner::Sum, nullptr, divideByCount});
  add("onnx.ReduceL1", {Combiner::Sum, absolute});
  add("onnx.ReduceL2", {Combiner::Sum, square, root});
  add("onnx.ReduceSumSquare", {Combiner::Sum, square});
  add("onnx.ReduceLogSum", {Combiner::Sum, nullptr, logarithm});
  registry.add("onnx.ReduceLogSumExp", 1, {.infer = inferReduce, .lower = lowerLogSumExp});
  for (bool isMax : {true, false})
    registry.add(isMax ? "onnx.ArgMax" : "onnx.ArgMin", 1,
                 {.infer = inferArg,
                  .lower = [isMax](Node &node, B &b) { return lowerArg(node, b, isMax); }});
  registry.add("onnx.CumSum", 11,
               {.infer = inferCumSum, .lower = lowerCumSum, .fold = nullptr, .minInputs = 2});
}
