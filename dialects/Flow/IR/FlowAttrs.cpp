// Meshes, SBP entries and references to weights: syntax, verifiers, arithmetic.
#include "dialects/Flow/IR/FlowAttrs.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flow;

#include "dialects/Flow/IR/FlowEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Flow/IR/FlowAttrs.cpp.inc"

void FlowDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Flow/IR/FlowAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// SBP
//===----------------------------------------------------------------------===//

LogicalResult SbpAttr::verify(function_ref<InFlightDiagnostic()> emitError, SbpKind kind,
                              int64_t dim, int64_t unit, Monoid) {
  if (kind != SbpKind::Split)
    return success();
  if (dim < 0)
    return emitError() << "split dim must not be negative, got " << dim;
  if (unit < 1)
    return emitError() << "split unit must be positive, got " << unit;
  return success();
}

std::string SbpAttr::str() const {
  switch (getKind()) {
  case SbpKind::Broadcast:
    return "B";
  case SbpKind::Partial:
    return "P(" + stringifyMonoid(getMonoid()).str() + ")";
  case SbpKind::Split:
    break;
  }
  std::string unit = getUnit() == 1 ? "" : ", unit = " + std::to_string(getUnit());
  return "S(" + std::to_string(getDim()) + unit + ")";
}

FailureOr<SbpAttr> flow::parseSbp(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef letter;
  if (parser.parseKeyword(&letter))
    return failure();
  MLIRContext *context = parser.getContext();
  if (letter == "B")
    return SbpAttr::broadcast(context);
  if (letter == "S") {
    int64_t dim, unit = 1;
    if (parser.parseLParen() || parser.parseInteger(dim))
      return failure();
    if (succeeded(parser.parseOptionalComma()) &&
        (parser.parseKeyword("unit") || parser.parseEqual() || parser.parseInteger(unit)))
      return failure();
    if (parser.parseRParen())
      return failure();
    auto attr = SbpAttr::getChecked([&] { return parser.emitError(loc); }, context, SbpKind::Split,
                                    dim, unit, Monoid::Sum);
    if (!attr)
      return failure();
    return attr;
  }
  StringRef monoid;
  if (letter == "P" && succeeded(parser.parseLParen()) && succeeded(parser.parseKeyword(&monoid)) &&
      succeeded(parser.parseRParen()))
    if (auto m = symbolizeMonoid(monoid))
      return SbpAttr::partial(context, *m);
  return parser.emitError(loc, "expected S(dim), S(dim, unit = n), B or P(sum|max|min|prod)"),
         failure();
}

SbpAttr flow::parseSbp(StringRef text, MLIRContext *context) {
  text = text.trim();
  if (text == "B")
    return SbpAttr::broadcast(context);
  if (text == "P")
    return SbpAttr::partial(context, Monoid::Sum);
  StringRef inner = text.drop_front(text.empty() ? 0 : 1).trim();
  if (!inner.consume_front("(") || !inner.consume_back(")"))
    return {};
  if (text.front() == 'P') {
    auto monoid = symbolizeMonoid(inner.trim());
    return monoid ? SbpAttr::partial(context, *monoid) : SbpAttr();
  }
  if (text.front() != 'S')
    return {};
  auto [dimText, unitText] = inner.split(',');
  int64_t dim, unit = 1;
  if (dimText.trim().getAsInteger(10, dim) || dim < 0)
    return {};
  if (inner.contains(',')) {
    auto [key, value] = unitText.split('=');
    if (key.trim() != "unit" || value.trim().getAsInteger(10, unit) || unit < 1)
      return {};
  }
  return SbpAttr::split(context, dim, unit);
}

std::string flow::stringifySbp(ArrayRef<SbpAttr> sbp) {
  std::string text = "[";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(sbp, os, [&](SbpAttr s) { os << s.str(); });
  return text + "]";
}

Attribute SbpAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<SbpAttr> attr = parseSbp(parser);
  if (failed(attr) || parser.parseGreater())
    return {};
  return *attr;
}

void SbpAttr::print(AsmPrinter &printer) const {
  printer << "<" << str() << ">";
}

SplitRange flow::balancedSplit(int64_t extent, int64_t ranks, int64_t coordinate, int64_t unit) {
  int64_t units = llvm::divideCeil(extent, unit);
  auto firstUnit = [&](int64_t c) { return c * (units / ranks) + std::min(c, units % ranks); };
  int64_t begin = std::min(extent, firstUnit(coordinate) * unit);
  int64_t end = std::min(extent, firstUnit(coordinate + 1) * unit);
  return {begin, end - begin};
}

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef,
                               ArrayRef<StringAttr> axisNames, ArrayRef<int64_t> axisSizes,
                               int64_t stage) {
  if (axisNames.size() != axisSizes.size())
    return emitError() << "expected one size per axis, got " << axisNames.size() << " names and "
                       << axisSizes.size() << " sizes";
  llvm::StringSet<> seen;
  for (auto [name, size] : llvm::zip(axisNames, axisSizes)) {
    if (!seen.insert(name.getValue()).second)
      return emitError() << "axis name '" << name.getValue() << "' occurs twice";
    if (size < 1)
      return emitError() << "axis '" << name.getValue() << "' must have a positive size, got "
                         << size;
  }
  if (stage < 0)
    return emitError() << "stage must not be negative, got " << stage;
  return success();
}

int64_t MeshAttr::getNumRanks() const {
  int64_t ranks = 1;
  for (int64_t size : getAxisSizes())
    ranks *= size;
  return ranks;
}

std::optional<size_t> MeshAttr::findAxis(StringRef name) const {
  for (auto [i, axis] : llvm::enumerate(getAxisNames()))
    if (axis.getValue() == name)
      return i;
  return std::nullopt;
}

MeshAttr MeshAttr::atStage(int64_t stage) const {
  return get(getContext(), getName(), getAxisNames(), getAxisSizes(), stage);
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::string name;
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  int64_t stage = 0;
  if (parser.parseLess() || parser.parseString(&name) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
        std::string axis;
        if (parser.parseString(&axis) || parser.parseEqual() ||
            parser.parseInteger(sizes.emplace_back()))
          return failure();
        names.push_back(StringAttr::get(parser.getContext(), axis));
        return success();
      }))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("stage") || parser.parseEqual() || parser.parseInteger(stage)))
    return {};
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), name, names, sizes,
                    stage);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printString(getName());
  printer << ", [";
  llvm::interleaveComma(llvm::zip(getAxisNames(), getAxisSizes()), printer, [&](auto axis) {
    printer.printString(std::get<0>(axis).getValue());
    printer << " = " << std::get<1>(axis);
  });
  printer << "]";
  if (getStage())
    printer << ", stage = " << getStage();
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

LogicalResult WeightsAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr,
                                  int64_t offset, int64_t size, RankedTensorType type) {
  if (offset < 0 || size < 0)
    return emitError() << "offset and size must not be negative, got " << offset << " and " << size;
  if (!type || !type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return emitError() << "weights need a static tensor type of integers or floats";
  int64_t expected = type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  if (size != expected)
    return emitError() << "expected " << expected << " bytes for " << type << ", got " << size;
  return success();
}
