// The definition of boxing as tensor code over the values of all ranks.
#include "dialects/Flow/Transforms/Redistribute.h"
#include "dialects/Flow/Rules/Monoids.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flow;

static Value emptyOf(OpBuilder &b, Location loc, RankedTensorType type) {
  return tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
}

Value flow::createNeutral(OpBuilder &b, Location loc, Monoid monoid, RankedTensorType type) {
  Value scalar = arith::ConstantOp::create(b, loc, neutralElement(monoid, type.getElementType()));
  return linalg::FillOp::create(b, loc, scalar, emptyOf(b, loc, type)).getResult(0);
}

/// An elementwise generic over tensors of one type.
static Value createElementwise(OpBuilder &b, Location loc, ValueRange inputs,
                               function_ref<Value(OpBuilder &, ValueRange)> body) {
  auto type = cast<RankedTensorType>(inputs[0].getType());
  SmallVector<AffineMap> maps(inputs.size() + 1, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, type, inputs, emptyOf(b, loc, type), maps, iterators,
                                   [&](OpBuilder &nested, Location, ValueRange arguments) {
                                     linalg::YieldOp::create(nested, loc,
                                                             body(nested, arguments.drop_back()));
                                   })
      .getResult(0);
}

static Value combineScalars(OpBuilder &b, Location loc, Monoid monoid, Value x, Value y) {
  bool real = isa<FloatType>(x.getType());
  switch (monoid) {
  case Monoid::Sum:
    return real ? arith::AddFOp::create(b, loc, x, y).getResult()
                : arith::AddIOp::create(b, loc, x, y).getResult();
  case Monoid::Prod:
    return real ? arith::MulFOp::create(b, loc, x, y).getResult()
                : arith::MulIOp::create(b, loc, x, y).getResult();
  case Monoid::Max:
    return real ? arith::MaximumFOp::create(b, loc, x, y).getResult()
                : arith::MaxSIOp::create(b, loc, x, y).getResult();
  case Monoid::Min:
    return real ? arith::MinimumFOp::create(b, loc, x, y).getResult()
                : arith::MinSIOp::create(b, loc, x, y).getResult();
  }
  return {};
}

Value flow::combinePair(OpBuilder &b, Location loc, Monoid monoid, Value lhs, Value rhs) {
  return createElementwise(b, loc, {lhs, rhs}, [&](OpBuilder &nested, ValueRange v) {
    return combineScalars(nested, loc, monoid, v[0], v[1]);
  });
}

Value flow::concatenate(OpBuilder &b, Location loc, int64_t dim, ArrayRef<Value> pieces) {
  SmallVector<Value> kept = llvm::filter_to_vector(pieces, [](Value v) {
    return !llvm::is_contained(cast<RankedTensorType>(v.getType()).getShape(), 0);
  });
  if (kept.empty()) { // the extent along `dim` may still count: 0 rows of 3 columns
    auto type = cast<RankedTensorType>(pieces[0].getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = 0;
    for (Value piece : pieces)
      shape[dim] += cast<RankedTensorType>(piece.getType()).getDimSize(dim);
    return tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  }
  return kept.size() == 1 ? kept[0] : tensor::ConcatOp::create(b, loc, dim, kept).getResult();
}

Value flow::extractPart(OpBuilder &b, Location loc, Value from, ArrayRef<OpFoldResult> offsets,
                        ArrayRef<int64_t> sizes) {
  auto type = cast<RankedTensorType>(from.getType());
  if (type.getShape() == sizes)
    return from;
  if (llvm::is_contained(sizes, 0))
    return tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, from, offsets,
                                        getAsIndexOpFoldResult(b.getContext(), sizes), strides);
}

SmallVector<SmallVector<int64_t>> flow::allCoordinates(MeshAttr mesh) {
  SmallVector<SmallVector<int64_t>> all(1);
  for (int64_t size : mesh.getAxisSizes()) {
    SmallVector<SmallVector<int64_t>> longer;
    for (ArrayRef<int64_t> prefix : all)
      for (int64_t c = 0; c < size; ++c) {
        longer.emplace_back(prefix);
        longer.back().push_back(c);
      }
    all = std::move(longer);
  }
  return all;
}

static Value combineFrom(OpBuilder &b, Location loc, ArrayRef<Value> parts, DistType type,
                         size_t axis) {
  if (axis == type.getMesh().getNumAxes())
    return parts[0];
  SbpAttr entry = type.getSbp()[axis];
  int64_t ranks = type.getMesh().getAxisSizes()[axis];
  size_t each = parts.size() / ranks;
  if (entry.isBroadcast())
    return combineFrom(b, loc, parts.take_front(each), type, axis + 1);
  SmallVector<Value> inner;
  for (int64_t i = 0; i < ranks; ++i)
    inner.push_back(combineFrom(b, loc, parts.slice(i * each, each), type, axis + 1));
  if (entry.isSplit())
    return concatenate(b, loc, entry.getDim(), inner);
  Value sum = inner[0];
  for (Value next : llvm::drop_begin(inner))
    sum = combinePair(b, loc, entry.getMonoid(), sum, next);
  return sum;
}

Value flow::combineParts(OpBuilder &b, Location loc, ArrayRef<Value> parts, DistType type) {
  return combineFrom(b, loc, parts, type, 0);
}

/// `cut` makes of the value that the outer axes left what rank `c` of `ranks`
/// holds of it on a P axis.
static SmallVector<Value>
cutWith(OpBuilder &b, Location loc, Value whole, DistType type,
        function_ref<Value(Value, Monoid, int64_t c, int64_t ranks)> cut) {
  SmallVector<Value> parts;
  for (ArrayRef<int64_t> coordinates : allCoordinates(type.getMesh())) {
    Shard shard = shardOf(type, RankBox::single(coordinates));
    SmallVector<OpFoldResult> offsets;
    for (AffineExpr offset : shard.offsets)
      offsets.push_back(b.getIndexAttr(cast<AffineConstantExpr>(offset).getValue()));
    Value part = extractPart(b, loc, whole, offsets, shard.sizes);
    for (auto [axis, entry] : llvm::enumerate(type.getSbp()))
      if (int64_t ranks = type.getMesh().getAxisSizes()[axis]; entry.isPartial() && ranks > 1)
        part = cut(part, entry.getMonoid(), coordinates[axis], ranks);
    parts.push_back(part);
  }
  return parts;
}

SmallVector<Value> flow::cutIntoParts(OpBuilder &b, Location loc, Value whole, DistType type) {
  auto keepInFirst = [&](Value part, Monoid monoid, int64_t c, int64_t) {
    return c == 0 ? part : createNeutral(b, loc, monoid, cast<RankedTensorType>(part.getType()));
  };
  // Outer axes first: an inner axis cuts what the outer one left, neutral or not.
  return cutWith(b, loc, whole, type, keepInFirst);
}

/// The share of rank `c` in a sum: quarters that add up to 1 and are not 1 themselves.
static double testWeight(int64_t c, int64_t ranks) {
  if (c == 0)
    return 2.5;
  auto middle = [](int64_t i) { return i % 2 ? -0.5 : 0.25; };
  if (c + 1 < ranks)
    return middle(c);
  double rest = -1.5;
  for (int64_t i = 1; i + 1 < ranks; ++i)
    rest -= middle(i);
  return rest;
}

static Value testPart(OpBuilder &b, Location loc, Value part, Monoid monoid, int64_t c,
                      int64_t ranks) {
  auto type = cast<RankedTensorType>(part.getType());
  Type element = type.getElementType();
  auto number = [&](OpBuilder &nested, double real, int64_t integer) -> Value {
    TypedAttr value = isa<FloatType>(element) ? TypedAttr(nested.getFloatAttr(element, real))
                                              : nested.getIntegerAttr(element, integer);
    return arith::ConstantOp::create(nested, loc, value);
  };
  auto with = [&](Monoid how, double real, int64_t integer) {
    return createElementwise(b, loc, part, [&](OpBuilder &nested, ValueRange v) {
      return combineScalars(nested, loc, how, v[0], number(nested, real, integer));
    });
  };
  if (monoid == Monoid::Sum) // integers: 3, 1, 1, .. and the rest
    return with(Monoid::Prod, testWeight(c, ranks), c == 0 ? 3 : c + 1 < ranks ? 1 : -ranks);
  bool tiny = element.isInteger(1) || element.isInteger(8); // too narrow for a distance
  if (c == 0)
    return part;
  if (monoid == Monoid::Prod || tiny)
    return createNeutral(b, loc, monoid, type);
  double distance = monoid == Monoid::Max ? -0.75 : 0.75;
  return with(Monoid::Sum, distance, monoid == Monoid::Max ? -1 : 1);
}

SmallVector<Value> flow::cutIntoTestParts(OpBuilder &b, Location loc, Value whole, DistType type) {
  return cutWith(b, loc, whole, type, [&](Value part, Monoid monoid, int64_t c, int64_t ranks) {
    return testPart(b, loc, part, monoid, c, ranks);
  });
}
