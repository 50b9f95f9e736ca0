// BatchNormalization (inference), LayerNormalization, InstanceNormalization.
#include "lib/Legalize/ONNX/BroadcastBuilder.h"
#include "lib/Legalize/ONNX/OperatorRegistry.h"
#include "lib/Legalize/ONNX/ReductionBuilder.h"
#include "lib/Legalize/ONNX/ReshapeBuilder.h"
#include "lib/Legalize/ONNX/ScalarMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

static Value subtract(B &b, Value x, Value y, Type element) {
  return elementwise(b, {x, y}, element, [](B &ib, ValueRange v) -> Value {
    return arith::SubFOp::create(ib, v[0], v[1]);
  });
}

/// x * scale + shift
static Value scaleAndShift(B &b, Value x, Value by, Value shift, Type element) {
  SmallVector<Value> operands{x, by};
  if (shift)
    operands.push_back(shift);
  return elementwise(b, operands, element, [](B &ib, ValueRange v) -> Value {
    Value product = arith::MulFOp::create(ib, v[0], v[1]);
    return v.size() == 3 ? Value(arith::AddFOp::create(ib, product, v[2])) : product;
  });
}

/// 1 / sqrt(x / count + epsilon)
static Value inverseDeviation(B &b, Value x, double count, double epsilon, Type element) {
  return elementwise(b, x, element, [&](B &ib, ValueRange v) -> Value {
    Value variance = count == 1
                         ? Value(v[0])
                         : Value(arith::DivFOp::create(ib, v[0], scalar(ib, element, count)));
    Value root =
        math::SqrtOp::create(ib, arith::AddFOp::create(ib, variance, scalar(ib, element, epsilon)));
    return arith::DivFOp::create(ib, scalar(ib, element, 1), root);
  });
}

static Value divideBy(B &b, Value x, double count, Type element) {
  return elementwise(b, x, element, [&](B &ib, ValueRange v) -> Value {
    return arith::DivFOp::create(ib, v[0], scalar(ib, element, count));
  });
}

namespace {
/// x normalized along axes: mean and inverse deviation keep the axes with size 1.
struct Normalized {
  Value value, mean, inverse;
};
} // namespace

static Normalized normalize(B &b, Value x, ArrayRef<int64_t> axes, double epsilon) {
  auto type = cast<RankedTensorType>(x.getType());
  Type element = type.getElementType();
  double count = 1;
  for (int64_t axis : axes)
    count *= type.getDimSize(axis);
  Value mean = divideBy(b, reduce(b, x, axes, /*keepDims=*/true, Combiner::Sum), count, element);
  Value centered = subtract(b, x, mean, element);
  Value squares = elementwise(b, centered, element, [](B &ib, ValueRange v) -> Value {
    return arith::MulFOp::create(ib, v[0], v[0]);
  });
  Value sum = reduce(b, squares, axes, /*keepDims=*/true, Combiner::Sum);
  Value inverse = inverseDeviation(b, sum, count, epsilon, element);
  return {scaleAndShift(b, centered, inverse, {}, element), mean, inverse};
}

/// A vector along dim 1 of a tensor of that rank.
static Value alongChannels(B &b, Value vector, int64_t rank) {
  SmallVector<int64_t> shape(std::max<int64_t>(1, rank - 1), 1);
  shape[0] = cast<RankedTensorType>(vector.getType()).getDimSize(0);
  return reshape(b, vector, shape);
}

//===----------------------------------------------------------------------===//
// BatchNormalization
//===----------------------------------------------------------------------===//

static Types inferBatchNorm(Node &node) {
  if (node.rank(0) < 2)
    return LogicalResult(node.wrong("expected an operand [N, C, ...]"));
  for (unsigned i = 1; i < 5; ++i)
    if (node.rank(i) != 1 || node.shape(i)[0] != node.shape(0)[1])
      return LogicalResult(node.wrong("operand " + Twine(i) + ": expected " +
                                      Twine(node.shape(0)[1]) + " elements, one per channel"));
  SmallVector<Type> types(5, node.type(1));
  types[0] = node.type(0);
  return types;
}

static Lowered lowerBatchNorm(Node &node, B &b) {
  if (node.integer("training_mode", 0) || node.wants(1))
    return LogicalResult(node.unsupported("BatchNormalization in training mode"));
  if (!node.integer("spatial", 1))
    return LogicalResult(node.unsupported("attribute spatial = 0"));
  Type element = node.element(0), wide = wideType(element);
  SmallVector<Value> v;
  for (unsigned i = 0; i < 5; ++i)
    v.push_back(castFloats(b, node.input(i), wide));
  Value inverse = inverseDeviation(b, v[4], 1, node.real("epsilon", 1e-5), wide);
  Value factor = scaleAndShift(b, v[1], inverse, {}, wide);
  Value centered = subtract(b, v[0], alongChannels(b, v[3], node.rank(0)), wide);
  Value result = scaleAndShift(b, centered, alongChannels(b, factor, node.rank(0)),
                               alongChannels(b, v[2], node.rank(0)), wide);
  SmallVector<Value> results(node.numOutputs());
  results[0] = castFloats(b, result, element);
  return results;
}

//===----------------------------------------------------------------------===//
// LayerNormalization
//===----------------------------------------------------------------------===//

static Types inferLayerNorm(Node &node) {
  auto axis = node.axis(node.integer("axis", -1), node.rank(0));
  if (failed(axis))
    return failure();
  ArrayRef<int64_t> tail = node.shape(0).drop_front(*axis);
  for (unsigned i = 1; i < 3; ++i) {
    if (!node.has(i))
      continue;
    auto shape = broadcastShapes({node.shape(i), tail});
    if (!shape || ArrayRef(*shape) != tail)
      return LogicalResult(
          node.wrong("operand " + Twine(i) + " does not broadcast to the normalized dims"));
  }
  SmallVector<int64_t> statistics(node.shape(0));
  std::fill(statistics.begin() + *axis, statistics.end(), 1);
  Type stash =
      node.integer("stash_type", 1) == 1 ? Float32Type::get(node.op.getContext()) : node.element(0);
  if (node.element(0).isF64())
    stash = node.element(0);
  auto other = RankedTensorType::get(statistics, stash);
  return SmallVector<Type>{node.type(0), other, other};
}

static Lowered lowerLayerNorm(Node &node, B &b) {
  int64_t axis = *node.axis(node.integer("axis", -1), node.rank(0));
  Type element = node.element(0), wide = wideType(element);
  Normalized n =
      normalize(b, castFloats(b, node.input(0), wide),
                llvm::to_vector(llvm::seq(axis, node.rank(0))), node.real("epsilon", 1e-5));
  Value scaleValue = castFloats(b, node.input(1), wide);
  Value shift = node.has(2) ? castFloats(b, node.input(2), wide) : Value();
  SmallVector<Value> results{
      castFloats(b, scaleAndShift(b, n.value, scaleValue, shift, wide), element)};
  if (node.numOutputs() > 1)
    results.push_back(castFloats(b, n.mean, node.resultType(1).getElementType()));
  if (node.numOutputs() > 2)
    results.push_back(castFloats(b, n.inverse, node.resultType(2).getElementType()));
  return results;
}

//===----------------------------------------------------------------------===//
// InstanceNormalization
//===----------------------------------------------------------------------===//

static Types inferInstanceNorm(Node &node) {
  if (node.rank(0) < 3)
    return LogicalResult(node.wrong("expected an operand [N, C, spatial...]"));
  for (unsigned i = 1; i < 3; ++i)
    if (node.rank(i) != 1 || node.shape(i)[0] != node.shape(0)[1])
      return LogicalResult(node.wrong("operand " + Twine(i) + ": expected " +
                                      Twine(node.shape(0)[1]) + " elements, one per channel"));
  return sameType(node);
}

static Lowered lowerInstanceNorm(Node &node, B &b) {
  Type element = node.element(0), wide = wideType(element);
  Normalized n =
      normalize(b, castFloats(b, node.input(0), wide),
                llvm::to_vector(llvm::seq<int64_t>(2, node.rank(0))), node.real("epsilon", 1e-5));
  Value result =
      scaleAndShift(b, n.value, alongChannels(b, castFloats(b, node.input(1), wide), node.rank(0)),
                    alongChannels(b, castFloats(b, node.input(2), wide), node.rank(0)), wide);
  return one(castFloats(b, result, element));
}

void flow::onnx_rules::addNormalizationRules(OperatorRegistry &registry) {
  registry.add("onnx.BatchNormalization", 7,
               {.infer = inferBatchNorm, .lower = lowerBatchNorm, .fold = nullptr, .minInputs = 5});
  registry.add("onnx.LayerNormalization", 17,
               {.infer = inferLayerNorm, .lower = lowerLayerNorm, .fold = nullptr, .minInputs = 2});
  registry.add(
      "onnx.InstanceNormalization", 6,
      {.infer = inferInstanceNorm, .lower = lowerInstanceNorm, .fold = nullptr, .minInputs = 3});
}
