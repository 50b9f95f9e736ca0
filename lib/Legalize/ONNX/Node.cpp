// Access to a node's operands, parameters and constants.
#include "lib/Legalize/ONNX/Node.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace flow;
using namespace flow::onnx_rules;

DenseElementsAttr flow::onnx_rules::constantElements(Value value, bool withWeights) {
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)))
    return elements;
  auto load = value.getDefiningOp<ml_program::GlobalLoadConstOp>();
  if (!load)
    return {};
  auto global =
      SymbolTable::lookupNearestSymbolFrom<ml_program::GlobalOp>(load, load.getGlobalAttr());
  if (!global || !global.getValue())
    return {};
  elements = dyn_cast<DenseElementsAttr>(*global.getValue());
  if (elements && isa<FloatType>(elements.getElementType()) && !withWeights)
    return {};
  return elements;
}

Type flow::onnx_rules::signlessType(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(signlessType(tensor.getElementType()));
  if (auto integer = dyn_cast<IntegerType>(type); integer && !integer.isSignless())
    return IntegerType::get(type.getContext(), integer.getWidth());
  return type;
}

std::string Node::name() const {
  if (auto loc = dyn_cast<NameLoc>(op.getLoc()))
    return loc.getName().str();
  return "";
}

bool Node::has(unsigned i) const {
  return i < numInputs() && !isa<NoneType>(op.getInputs()[i].getType());
}

bool Node::wants(unsigned i) const {
  return i < numOutputs() && !op.getResult(i).use_empty();
}

Value Node::input(unsigned i) const {
  return lowered ? lowered->lookupOrDefault(Value(op.getInputs()[i])) : Value(op.getInputs()[i]);
}

RankedTensorType Node::type(unsigned i) const {
  return cast<RankedTensorType>(op.getInputs()[i].getType());
}

RankedTensorType Node::resultType(unsigned i) const {
  return cast<RankedTensorType>(signlessType(op.getResult(i).getType()));
}

int64_t Node::integer(StringRef attribute, int64_t otherwise) const {
  auto value = dyn_cast_if_present<IntegerAttr>(parameter(attribute));
  return value ? value.getInt() : otherwise;
}

double Node::real(StringRef attribute, double otherwise) const {
  auto value = dyn_cast_if_present<FloatAttr>(parameter(attribute));
  return value ? value.getValueAsDouble() : otherwise;
}

std::string Node::text(StringRef attribute, StringRef otherwise) const {
  auto value = dyn_cast_if_present<StringAttr>(parameter(attribute));
  return value ? value.str() : otherwise.str();
}

std::optional<SmallVector<int64_t>> Node::integers(StringRef attribute) const {
  if (auto value = dyn_cast_if_present<DenseI64ArrayAttr>(parameter(attribute)))
    return SmallVector<int64_t>(value.asArrayRef());
  return std::nullopt;
}

DenseElementsAttr Node::constant(unsigned i, bool withWeights) const {
  return has(i) ? constantElements(op.getInputs()[i], withWeights) : DenseElementsAttr();
}

std::optional<SmallVector<int64_t>> Node::constantIntegers(unsigned i) const {
  DenseElementsAttr elements = constant(i);
  if (!elements || !elements.getElementType().isInteger())
    return std::nullopt;
  bool isUnsigned =
      elements.getElementType().isUnsignedInteger() || elements.getElementType().isInteger(1);
  return llvm::map_to_vector(elements.getValues<APInt>(), [&](const APInt &value) {
    return isUnsigned ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue();
  });
}

std::optional<double> Node::constantScalar(unsigned i) const {
  DenseElementsAttr elements = constant(i, /*withWeights=*/true);
  if (!elements || elements.getNumElements() != 1)
    return std::nullopt;
  if (auto integers = constantIntegers(i))
    return static_cast<double>(integers->front());
  bool lossy;
  APFloat value = *elements.getValues<APFloat>().begin();
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
  return value.convertToDouble();
}

std::optional<SmallVector<int64_t>> Node::integersFrom(StringRef attribute, unsigned i,
                                                       bool &failed) {
  failed = false;
  if (auto value = integers(attribute))
    return value;
  if (!has(i))
    return std::nullopt;
  auto value = constantIntegers(i);
  if (!value) {
    failed = true;
    (void)unsupported("operand '" + attribute + "' must be known at compile time");
  }
  return value;
}

FailureOr<int64_t> Node::axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return wrong("axis " + Twine(axis) + " is out of range for rank " + Twine(rank));
  return axis < 0 ? axis + rank : axis;
}

FailureOr<SmallVector<int64_t>> Node::axes(ArrayRef<int64_t> axes, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t value : axes) {
    FailureOr<int64_t> mapped = axis(value, rank);
    if (failed(mapped))
      return failure();
    if (llvm::is_contained(result, *mapped))
      return wrong("axis " + Twine(value) + " is given twice");
    result.push_back(*mapped);
  }
  return result;
}

LogicalResult Node::wrong(const Twine &what) {
  reason = what.str();
  isWrong = true;
  return failure();
}

LogicalResult Node::unsupported(const Twine &what) {
  reason = what.str();
  isWrong = false;
  return failure();
}
