// Constant, ConstantOfShape, Range.
#include "dialects/Flow/IR/FlowAttrs.h"
#include "lib/Legalize/ONNX/ConstantElements.h"
#include "lib/Legalize/ONNX/ReductionBuilder.h"
#include "lib/Legalize/ONNX/ScalarMath.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

//===----------------------------------------------------------------------===//
// Constant
//===----------------------------------------------------------------------===//

/// The value in any of the attributes that Constant has grown.
static DenseElementsAttr constantValue(Node &node) {
  Builder b(node.op.getContext());
  auto tensor = [](ArrayRef<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  };
  if (auto value = dyn_cast_if_present<DenseElementsAttr>(node.parameter("value")))
    return value;
  if (auto value = dyn_cast_if_present<FloatAttr>(node.parameter("value_float")))
    return DenseElementsAttr::get(tensor({}, b.getF32Type()), ArrayRef<Attribute>(value));
  if (auto value = dyn_cast_if_present<IntegerAttr>(node.parameter("value_int")))
    return DenseElementsAttr::get(tensor({}, b.getI64Type()), ArrayRef<Attribute>(value));
  if (auto value = dyn_cast_if_present<DenseF32ArrayAttr>(node.parameter("value_floats")))
    return DenseElementsAttr::get(tensor(value.size(), b.getF32Type()), value.asArrayRef());
  if (auto value = dyn_cast_if_present<DenseI64ArrayAttr>(node.parameter("value_ints")))
    return DenseElementsAttr::get(tensor(value.size(), b.getI64Type()), value.asArrayRef());
  return {};
}

static Types inferConstant(Node &node) {
  DenseElementsAttr value = constantValue(node);
  if (!value)
    return LogicalResult(
        node.unsupported("a constant of strings, a sparse tensor, or without a value"));
  return SmallVector<Type>{value.getType()};
}

static Lowered lowerConstant(Node &node, B &b) {
  DenseElementsAttr value = constantValue(node);
  return one(arith::ConstantOp::create(b, value.bitcast(node.resultType().getElementType())));
}

//===----------------------------------------------------------------------===//
// ConstantOfShape
//===----------------------------------------------------------------------===//

static DenseElementsAttr fillValue(Node &node) {
  if (auto value = dyn_cast_if_present<DenseElementsAttr>(node.parameter("value")))
    return value;
  Type f32 = Float32Type::get(node.op.getContext());
  return DenseElementsAttr::get(RankedTensorType::get({1}, f32), 0.0f);
}

static Types inferConstantOfShape(Node &node) {
  auto shape = node.constantIntegers(0);
  if (!shape)
    return LogicalResult(node.unsupported("operand 'shape' must be known at compile time"));
  if (fillValue(node).getNumElements() != 1)
    return LogicalResult(node.wrong("attribute 'value' must have one element"));
  return oneType(node, *shape, fillValue(node).getElementType());
}

static Folded foldConstantOfShape(Node &node) {
  auto result = emptyResult(node);
  if (!result)
    return {};
  auto type = RankedTensorType::get(result->shape, result->element);
  return {DenseElementsAttr::get(type, *fillValue(node).getValues<Attribute>().begin())};
}

static Lowered lowerConstantOfShape(Node &node, B &b) {
  Type element = node.resultType().getElementType();
  auto value = fillValue(node).bitcast(element);
  return one(filled(b, node.resultType().getShape(),
                    cast<TypedAttr>(*value.getValues<Attribute>().begin())));
}

//===----------------------------------------------------------------------===//
// Range
//===----------------------------------------------------------------------===//

namespace {
struct RangeOf {
  double start, delta;
  int64_t count;
};
} // namespace

static FailureOr<RangeOf> readRange(Node &node) {
  auto start = node.constantScalar(0), limit = node.constantScalar(1),
       delta = node.constantScalar(2);
  if (!start || !limit || !delta)
    return LogicalResult(node.unsupported("operands must be known at compile time"));
  if (*delta == 0 || !std::isfinite(*start) || !std::isfinite(*limit) || !std::isfinite(*delta))
    return LogicalResult(node.wrong("a range with a delta of 0 or endless"));
  double count = std::ceil((*limit - *start) / *delta);
  if (count > 1e12)
    return LogicalResult(node.wrong("a range of more than 1e12 elements"));
  return RangeOf{*start, *delta, count > 0 ? static_cast<int64_t>(count) : 0};
}

static Types inferRange(Node &node) {
  auto range = readRange(node);
  if (failed(range))
    return failure();
  return oneType(node, range->count, node.element(0));
}

static Folded foldRange(Node &node) {
  auto range = readRange(node);
  auto result = emptyResult(node);
  if (failed(range) || !result)
    return {};
  for (int64_t i = 0; i < range->count; ++i) {
    double value = range->start + i * range->delta;
    if (result->isFloat())
      result->reals.push_back(value);
    else
      result->integers.push_back(static_cast<int64_t>(range->start) +
                                 i * static_cast<int64_t>(range->delta));
  }
  return {result->attribute()};
}

static Lowered lowerRange(Node &node, B &b) {
  RangeOf range = *readRange(node);
  Type element = node.resultType().getElementType();
  Value init = tensor::EmptyOp::create(b, node.resultType().getShape(), element);
  auto generic = linalg::GenericOp::create(
      b, init.getType(), ValueRange(), init, SmallVector<AffineMap>{b.getMultiDimIdentityMap(1)},
      SmallVector<utils::IteratorType>{utils::IteratorType::parallel},
      [&](OpBuilder &inner, Location loc, ValueRange) {
        B ib(loc, inner);
        Value i = arith::IndexCastOp::create(ib, ib.getI64Type(), linalg::IndexOp::create(ib, 0));
        Value at = castScalar(ib, i, element, false, false);
        Value offset = combine(ib, Combiner::Product, at, scalar(ib, element, range.delta));
        linalg::YieldOp::create(
            ib, combine(ib, Combiner::Sum, offset, scalar(ib, element, range.start)));
      });
  return one(generic.getResult(0));
}

void flow::onnx_rules::addConstantRules(OperatorRegistry &registry) {
  registry.add("onnx.Constant", 1,
               {.infer = inferConstant,
                .lower = lowerConstant,
                .fold = [](Node &node) -> Folded { return {constantValue(node)}; },
                .minInputs = 0});
  registry.add(
      "onnx.ConstantOfShape", 9,
      {.infer = inferConstantOfShape, .lower = lowerConstantOfShape, .fold = foldConstantOfShape});
  registry.add("onnx.Range", 11,
               {.infer = inferRange, .lower = lowerRange, .fold = foldRange, .minInputs = 3});
}
