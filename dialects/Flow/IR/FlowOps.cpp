// Verifiers, syntax and folds of the flow ops.
#include "dialects/Flow/IR/FlowOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace flow;

#define GET_OP_CLASSES
#include "dialects/Flow/IR/FlowOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

LogicalResult OperatorOp::verify() {
  auto [domain, name] = getOperatorName().split('.');
  if (domain.empty() || name.empty())
    return emitOpError("expected a name of the form 'domain.Operator', got '")
           << getOperatorName() << "'";
  if (static_cast<int64_t>(getVersion()) < 1)
    return emitOpError("version must be positive, got ") << static_cast<int64_t>(getVersion());
  return success();
}

OpFoldResult AbsentOp::fold(FoldAdaptor) {
  return UnitAttr::get(getContext());
}

//===----------------------------------------------------------------------===//
// Request
//===----------------------------------------------------------------------===//

LogicalResult ConstrainOp::verify() {
  size_t axes = getMesh().getNumAxes();
  if (getSbp().size() != axes)
    return emitOpError("expected ")
           << axes << " SBP entries, one per mesh axis, got " << getSbp().size();
  int64_t rank = cast<RankedTensorType>(getInput().getType()).getRank();
  for (Attribute entry : getSbp()) {
    auto sbp = cast<SbpAttr>(entry);
    if (sbp.isSplit() && sbp.getDim() >= rank)
      return emitOpError() << sbp.str() << " is out of range for a tensor of rank " << rank;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Decision: flow.compute
//===----------------------------------------------------------------------===//

// %r:2 = flow.compute (%x : !t, %w : !u) -> (!v, !w) phase <backward> { ^bb0(...): ... }
ParseResult ComputeOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> operandTypes, resultTypes;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                     [&]() -> ParseResult {
                                       return failure(
                                           parser.parseOperand(operands.emplace_back()) ||
                                           parser.parseColonType(operandTypes.emplace_back()));
                                     }) ||
      parser.resolveOperands(operands, operandTypes, loc, result.operands) ||
      parser.parseOptionalArrowTypeList(resultTypes))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("phase"))) {
    PhaseAttr phase;
    if (parser.parseCustomAttributeWithFallback(phase, Type(), getPhaseAttrName(result.name),
                                                result.attributes))
      return failure();
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*result.addRegion(), {}, /*enableNameShadowing=*/true))
    return failure();
  result.addTypes(resultTypes);
  return success();
}

void ComputeOp::print(OpAsmPrinter &printer) {
  printer << " (";
  llvm::interleaveComma(getInputs(), printer,
                        [&](Value v) { printer << v << " : " << v.getType(); });
  printer << ")";
  printer.printOptionalArrowTypeList(getResultTypes());
  if (PhaseAttr phase = getPhaseAttr()) {
    printer << " phase ";
    printer.printStrippedAttrOrType(phase);
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getPhaseAttrName()});
  printer << " ";
  printer.printRegion(getBody());
}

/// The type of a value inside the region.
static Type globalTypeOf(Type type) {
  if (auto dist = dyn_cast<DistType>(type))
    return dist.getGlobalType();
  return type;
}

LogicalResult ComputeOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != getNumOperands())
    return emitOpError("expected ") << getNumOperands() << " block arguments, one per operand, got "
                                    << block.getNumArguments();
  MeshAttr mesh;
  auto checkMesh = [&](Type type) -> LogicalResult {
    auto dist = dyn_cast<DistType>(type);
    if (!dist)
      return success();
    if (mesh && dist.getMesh() != mesh)
      return emitOpError("expected all values on mesh ") << mesh << ", got " << dist.getMesh();
    mesh = dist.getMesh();
    return success();
  };
  for (auto [i, operand, argument] : llvm::enumerate(getInputs(), block.getArguments())) {
    if (isa<ShapedType>(operand.getType()))
      return emitOpError("operand ")
             << i << " must be distributed or a scalar, got " << operand.getType();
    if (globalTypeOf(operand.getType()) != argument.getType())
      return emitOpError("block argument ")
             << i << " must have the operand's global type " << globalTypeOf(operand.getType())
             << ", got " << argument.getType();
    if (failed(checkMesh(operand.getType())))
      return failure();
  }
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield)
    return emitOpError("expected the region to end in flow.yield");
  if (yield.getNumOperands() != getNumResults())
    return emitOpError("expected ")
           << getNumResults() << " yielded values, one per result, got " << yield.getNumOperands();
  for (auto [i, result, value] : llvm::enumerate(getOutputs(), yield.getValues())) {
    if (globalTypeOf(result.getType()) != value.getType())
      return emitOpError("yielded value ")
             << i << " must have the result's global type " << globalTypeOf(result.getType())
             << ", got " << value.getType();
    if (failed(checkMesh(result.getType())))
      return failure();
  }
  return success();
}

/// Drops operands that the region does not read and results that nobody uses.
LogicalResult ComputeOp::canonicalize(ComputeOp op, PatternRewriter &rewriter) {
  Block &block = op.getBody().front();
  BitVector deadOperands(op.getNumOperands()), deadResults(op.getNumResults());
  SmallVector<Value> inputs;
  // An operand given twice is one operand.
  for (auto [i, argument] : llvm::enumerate(block.getArguments())) {
    auto first = llvm::find(inputs, op.getInputs()[i]);
    bool again = first != inputs.end();
    inputs.push_back(op.getInputs()[i]);
    if (again && !argument.use_empty()) {
      unsigned original = first - inputs.begin();
      rewriter.replaceAllUsesWith(argument, block.getArgument(original));
      deadOperands.reset(original);
    }
    if (argument.use_empty())
      deadOperands.set(i);
  }
  for (auto [i, result] : llvm::enumerate(op.getOutputs()))
    if (result.use_empty())
      deadResults.set(i);
  if (deadResults.all() && op.getNumResults())
    return failure(); // dead as a whole: the driver erases it
  if (deadOperands.none() && deadResults.none())
    return failure();
  if (deadResults.none()) {
    rewriter.modifyOpInPlace(op, [&] {
      block.eraseArguments(deadOperands);
      op->eraseOperands(deadOperands);
    });
    return success();
  }
  SmallVector<Type> types;
  SmallVector<Value> kept;
  for (OpResult result : op->getResults())
    if (!deadResults.test(result.getResultNumber())) {
      types.push_back(result.getType());
      kept.push_back(result);
    }
  auto slim = ComputeOp::create(rewriter, op.getLoc(), types, op.getInputs(), op.getPhaseAttr());
  slim->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  rewriter.inlineRegionBefore(op.getBody(), slim.getBody(), slim.getBody().end());
  auto yield = cast<YieldOp>(slim.getBody().front().getTerminator());
  rewriter.modifyOpInPlace(yield, [&] { yield->eraseOperands(deadResults); });
  for (auto [from, to] : llvm::zip(kept, slim.getOutputs()))
    rewriter.replaceAllUsesWith(from, to);
  rewriter.eraseOp(op);
  return success();
}

//===----------------------------------------------------------------------===//
// Decision: flow.boxing
//===----------------------------------------------------------------------===//

LogicalResult BoxingOp::verify() {
  DistType from = getInput().getType(), to = getResult().getType();
  if (from.getGlobalType() != to.getGlobalType())
    return emitOpError("expected the result to keep the global type ")
           << from.getGlobalType() << ", got " << to.getGlobalType();
  if (from.getMesh().getAxisNames() != to.getMesh().getAxisNames() ||
      from.getMesh().getAxisSizes() != to.getMesh().getAxisSizes())
    return emitOpError("expected meshes with the same axes, got ")
           << from.getMesh() << " and " << to.getMesh();
  return success();
}

OpFoldResult BoxingOp::fold(FoldAdaptor) {
  if (getInput().getType() == getResult().getType())
    return getInput();
  return {};
}

/// A boxing that feeds only one other boxing is one boxing from the first's
/// input, unless the first reduces: combining later would move partial values.
LogicalResult BoxingOp::canonicalize(BoxingOp op, PatternRewriter &rewriter) {
  auto first = op.getInput().getDefiningOp<BoxingOp>();
  if (!first || !first->hasOneUse())
    return rewriter.notifyMatchFailure(op, "no boxing that only this one reads");
  if (first.getInput().getType().getMesh() != op.getResult().getType().getMesh() ||
      first.getResult().getType().getMesh() != op.getResult().getType().getMesh())
    return rewriter.notifyMatchFailure(op, "crosses stages");
  if (llvm::any_of(first.getInput().getType().getSbp(), [](SbpAttr s) { return s.isPartial(); }))
    return rewriter.notifyMatchFailure(op, "the first one combines partial values");
  rewriter.modifyOpInPlace(op, [&] { op.getInputMutable().assign(first.getInput()); });
  return success();
}
