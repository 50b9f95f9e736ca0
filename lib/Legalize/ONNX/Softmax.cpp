// Softmax stays linalg.softmax; LogSoftmax is x - lse(x).
#include "lib/Legalize/ONNX/BroadcastBuilder.h"
#include "lib/Legalize/ONNX/OperatorRegistry.h"
#include "lib/Legalize/ONNX/ReductionBuilder.h"
#include "lib/Legalize/ONNX/ReshapeBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

static Value softmax(B &b, Value x, int64_t axis) {
  auto type = cast<RankedTensorType>(x.getType());
  Value init = tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
  return linalg::SoftmaxOp::create(b, TypeRange(type), x, init, b.getI64IntegerAttr(axis))
      .getResult()[0];
}

static Value logSoftmax(B &b, Value x, int64_t axis) {
  Type element = cast<RankedTensorType>(x.getType()).getElementType();
  auto subtract = [&](Value a, Value c) {
    return elementwise(b, {a, c}, element, [](B &ib, ValueRange v) -> Value {
      return arith::SubFOp::create(ib, v[0], v[1]);
    });
  };
  Value shifted = subtract(x, maximumAsShift(b, x, axis));
  Value exponentials = elementwise(b, shifted, element, [](B &ib, ValueRange v) -> Value {
    return math::ExpOp::create(ib, v[0]);
  });
  Value sum = reduce(b, exponentials, axis, /*keepDims=*/true, Combiner::Sum);
  Value lse = elementwise(
      b, sum, element, [](B &ib, ValueRange v) -> Value { return math::LogOp::create(ib, v[0]); });
  return subtract(shifted, lse);
}

static Types inferSoftmax(Node &node) {
  int64_t axis = node.integer("axis", node.version() < 13 ? 1 : -1), rank = node.rank(0);
  // The flattening of older versions allows axis = rank: nothing is normalized.
  if (!(node.version() < 13 && axis == rank) && failed(node.axis(axis, rank)))
    return failure();
  return sameType(node);
}

template <Value (*apply)(B &, Value, int64_t)> static Lowered lowerSoftmax(Node &node, B &b) {
  if (!node.isFloat(0))
    return LogicalResult(node.unsupported("expected floating-point elements"));
  Type element = node.element(0);
  ArrayRef<int64_t> shape = node.shape(0);
  int64_t axis = node.integer("axis", node.version() < 13 ? 1 : -1);
  axis = axis < 0 ? axis + node.rank(0) : axis;
  Value x = castFloats(b, node.input(0), wideType(element));
  if (node.version() >= 13 || axis + 1 == node.rank(0))
    return one(castFloats(b, apply(b, x, axis), element));
  // Before version 13 all dims from the axis on are one.
  SmallVector<int64_t> flat{1, 1};
  for (auto [d, extent] : llvm::enumerate(shape))
    flat[static_cast<int64_t>(d) >= axis] *= extent;
  Value result = reshape(b, apply(b, reshape(b, x, flat), 1), shape);
  return one(castFloats(b, result, element));
}

void flow::onnx_rules::addSoftmaxRules(OperatorRegistry &registry) {
  registry.add("onnx.Softmax", 1, {.infer = inferSoftmax, .lower = lowerSoftmax<softmax>});
  registry.add("onnx.LogSoftmax", 1, {.infer = inferSoftmax, .lower = lowerSoftmax<logSoftmax>});
}
