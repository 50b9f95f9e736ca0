// The type of a distributed value: syntax and verifier.
#include "dialects/Flow/IR/FlowTypes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flow;

#define GET_TYPEDEF_CLASSES
#include "dialects/Flow/IR/FlowTypes.cpp.inc"

void FlowDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Flow/IR/FlowTypes.cpp.inc"
      >();
}

LogicalResult DistType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type elementType, MeshAttr mesh,
                               ArrayRef<SbpAttr> sbp) {
  if (!isa<FloatType, IntegerType, IndexType, ComplexType>(elementType))
    return emitError() << "expected a float, integer, index or complex element type, got "
                       << elementType;
  if (mesh.getNumAxes() != sbp.size())
    return emitError() << "expected " << mesh.getNumAxes()
                       << " SBP entries, one per mesh axis, got " << sbp.size();
  for (SbpAttr s : sbp)
    if (s.isSplit() && s.getDim() >= static_cast<int64_t>(shape.size()))
      return emitError() << s.str() << " is out of range for a tensor of rank " << shape.size();
  return success();
}

Type DistType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type elementType;
  MeshAttr mesh;
  SmallVector<SbpAttr> sbp;
  if (parser.parseLess() || parser.parseDimensionList(shape) || parser.parseType(elementType) ||
      parser.parseComma() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&]() -> ParseResult {
                                       FailureOr<SbpAttr> entry = parseSbp(parser);
                                       if (failed(entry))
                                         return failure();
                                       sbp.push_back(*entry);
                                       return success();
                                     }) ||
      parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), shape, elementType,
                    mesh, sbp);
}

void DistType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  if (!getShape().empty())
    printer << "x";
  printer << getElementType() << ", " << getMesh() << ", " << stringifySbp(getSbp()) << ">";
}
