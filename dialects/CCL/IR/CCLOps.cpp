// Verifiers of the collectives.
#include "dialects/CCL/IR/CCLOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flow::ccl;

#include "dialects/CCL/IR/CCLDialect.cpp.inc"
#include "dialects/CCL/IR/CCLEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/CCL/IR/CCLAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/CCL/IR/CCLOps.cpp.inc"

void CCLDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/CCL/IR/CCLAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/CCL/IR/CCLOps.cpp.inc"
      >();
}

static LogicalResult verifyAxes(Operation *op, ArrayAttr axes) {
  if (axes.empty())
    return op->emitOpError("expected at least one axis");
  llvm::StringSet<> seen;
  for (Attribute axis : axes)
    if (StringRef name = cast<StringAttr>(axis).getValue(); !seen.insert(name).second)
      return op->emitOpError("axis '") << name << "' occurs twice";
  return success();
}

/// `blocks` must be `[members] + block`.
static LogicalResult verifyBlocks(Operation *op, StringRef what, Type blocks, Type block) {
  ArrayRef<int64_t> outer = cast<RankedTensorType>(blocks).getShape();
  ArrayRef<int64_t> inner = cast<RankedTensorType>(block).getShape();
  if (outer.empty() || outer.drop_front() != inner)
    return op->emitOpError("expected the ")
           << what << " to hold one block of type " << block << " per member, got " << blocks;
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (getInput().getType() != getInit().getType())
    return emitOpError("expected a destination of type ")
           << getInput().getType() << ", got " << getInit().getType();
  return verifyAxes(*this, getAxes());
}

LogicalResult AllGatherOp::verify() {
  if (failed(verifyBlocks(*this, "destination", getInit().getType(), getInput().getType())))
    return failure();
  return verifyAxes(*this, getAxes());
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(verifyBlocks(*this, "input", getInput().getType(), getInit().getType())))
    return failure();
  return verifyAxes(*this, getAxes());
}

LogicalResult AllToAllOp::verify() {
  auto type = cast<RankedTensorType>(getInput().getType());
  if (type != getInit().getType())
    return emitOpError("expected a destination of type ")
           << type << ", got " << getInit().getType();
  if (type.getRank() == 0)
    return emitOpError("expected one block per member, got ") << type;
  return verifyAxes(*this, getAxes());
}

template <typename OpTy> static LogicalResult verifyPeer(OpTy op) {
  if (static_cast<int64_t>(op.getStage()) < 0)
    return op.emitOpError("stage must not be negative, got ")
           << static_cast<int64_t>(op.getStage());
  if (static_cast<int64_t>(op.getChannel()) < 0)
    return op.emitOpError("channel must not be negative, got ")
           << static_cast<int64_t>(op.getChannel());
  return success();
}

LogicalResult SendOp::verify() {
  return verifyPeer(*this);
}
LogicalResult RecvOp::verify() {
  return verifyPeer(*this);
}
