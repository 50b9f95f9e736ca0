// Small tensors whose elements are computed at compile time.
#include "lib/Legalize/ONNX/ConstantElements.h"

using namespace mlir;
using namespace flow;
using namespace flow::onnx_rules;

void Elements::append(const Elements &other, size_t i) {
  if (isFloat())
    reals.push_back(other.reals[i]);
  else
    integers.push_back(other.integers[i]);
}

DenseElementsAttr Elements::attribute() const {
  auto type = RankedTensorType::get(shape, element);
  if (auto floatType = dyn_cast<FloatType>(element)) {
    return DenseElementsAttr::get(type, llvm::map_to_vector(reals, [&](double value) {
                                    APFloat result(value);
                                    bool lossy;
                                    result.convert(floatType.getFloatSemantics(),
                                                   APFloat::rmNearestTiesToEven, &lossy);
                                    return result;
                                  }));
  }
  unsigned width = element.getIntOrFloatBitWidth();
  return DenseElementsAttr::get(type, llvm::map_to_vector(integers, [&](int64_t value) {
                                  return APInt(64, static_cast<uint64_t>(value)).trunc(width);
                                }));
}

std::optional<Elements> flow::onnx_rules::foldable(const Node &node, unsigned i) {
  DenseElementsAttr attribute = node.constant(i);
  if (!attribute || attribute.getNumElements() > kFoldedElements)
    return std::nullopt;
  Elements result{SmallVector<int64_t>(node.shape(i)), node.element(i), {}, {}};
  if (auto integers = node.constantIntegers(i)) {
    result.integers.assign(integers->begin(), integers->end());
    return result;
  }
  if (!node.isFloat(i))
    return std::nullopt;
  for (APFloat value : attribute.getValues<APFloat>()) {
    bool lossy;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    result.reals.push_back(value.convertToDouble());
  }
  return result;
}

std::optional<SmallVector<Elements>> flow::onnx_rules::foldableInputs(const Node &node) {
  SmallVector<Elements> result;
  for (unsigned i = 0; i < node.numInputs(); ++i) {
    auto elements = foldable(node, i);
    if (!elements)
      return std::nullopt;
    result.push_back(std::move(*elements));
  }
  return result;
}

std::optional<Elements> flow::onnx_rules::emptyResult(const Node &node, unsigned i) {
  OperatorOp op = node.op;
  auto type = dyn_cast<RankedTensorType>(op.getResult(i).getType());
  if (!type || !type.hasStaticShape() || type.getNumElements() > kFoldedElements)
    return std::nullopt;
  return Elements{SmallVector<int64_t>(type.getShape()), type.getElementType(), {}, {}};
}

void flow::onnx_rules::forEachIndex(ArrayRef<int64_t> shape,
                                    llvm::function_ref<void(ArrayRef<int64_t>)> at) {
  if (llvm::is_contained(shape, 0))
    return;
  SmallVector<int64_t> index(shape.size(), 0);
  while (true) {
    at(index);
    size_t d = shape.size();
    while (d && ++index[d - 1] == shape[d - 1])
      index[--d] = 0;
    if (!d)
      return;
  }
}

size_t flow::onnx_rules::broadcastPosition(ArrayRef<int64_t> shape, ArrayRef<int64_t> index) {
  size_t position = 0, offset = index.size() - shape.size();
  for (auto [d, extent] : llvm::enumerate(shape))
    position = position * extent + (extent == 1 ? 0 : index[offset + d]);
  return position;
}

std::function<Folded(Node &)>
flow::onnx_rules::foldElementwise(std::function<int64_t(ArrayRef<int64_t>)> integers,
                                  std::function<double(ArrayRef<double>)> reals) {
  return [integers, reals](Node &node) -> Folded {
    auto inputs = foldableInputs(node);
    auto result = emptyResult(node);
    if (!inputs || !result || inputs->empty())
      return {};
    bool isFloat = inputs->front().isFloat();
    if (isFloat ? !reals : !integers)
      return {};
    for (const Elements &input : *inputs)
      if (input.isFloat() != isFloat)
        return {};
    forEachIndex(result->shape, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> ints;
      SmallVector<double> floats;
      for (const Elements &input : *inputs) {
        size_t at = broadcastPosition(input.shape, index);
        if (isFloat)
          floats.push_back(input.reals[at]);
        else
          ints.push_back(input.integers[at]);
      }
      double real = isFloat ? reals(floats) : 0;
      int64_t integer = isFloat ? static_cast<int64_t>(real) : integers(ints);
      if (result->isFloat())
        result->reals.push_back(isFloat ? real : static_cast<double>(integer));
      else
        result->integers.push_back(integer);
    });
    return {result->attribute()};
  };
}
