// What later phases may assume after import.
#include "dialects/Flow/IR/FlowOps.h"
#include "lib/Legalize/ONNX/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace flow {
#define GEN_PASS_DEF_VERIFYIMPORT
#include "lib/Legalize/ONNX/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {
struct VerifyImport : flow::impl::VerifyImportBase<VerifyImport> {
  void runOnOperation() override;
};
} // namespace

static LogicalResult checkType(Operation *op, Type type) {
  auto tensor = dyn_cast<TensorType>(type);
  if (!tensor)
    return success();
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked || !ranked.hasStaticShape())
    return op->emitOpError("has a tensor of dynamic shape after import: ") << type;
  if (!tensor.getElementType().isSignlessIntOrFloat() &&
      !isa<IndexType, ComplexType>(tensor.getElementType()))
    return op->emitOpError("has a tensor of unsupported elements after import: ") << type;
  return success();
}

static LogicalResult checkOp(Operation *op) {
  if (isa<OperatorOp, AbsentOp>(op))
    return op->emitOpError("is left after import");
  StringRef dialect = op->getName().getDialectNamespace();
  if (!llvm::is_contained(
          {"linalg", "tensor", "arith", "math", "scf", "func", "ml_program", "flow", "builtin"},
          dialect))
    return op->emitOpError("is of a dialect that import does not end in");
  for (Type type : llvm::concat<const Type>(llvm::to_vector(op->getOperandTypes()),
                                            llvm::to_vector(op->getResultTypes())))
    if (failed(checkType(op, type)))
      return failure();
  bool hasTensor = llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>);
  if (hasTensor && !op->getLoc()->findInstanceOf<NameLoc>() && isa<func::FuncOp>(op->getParentOp()))
    return op->emitOpError("has no location that names the model's node");
  return success();
}

void VerifyImport::runOnOperation() {
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (!function.getArgAttrOfType<StringAttr>(i, "flow.kind")) {
        function.emitOpError("argument ") << i << " has no flow.kind";
        return signalPassFailure();
      }
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (!function.getResultAttrOfType<StringAttr>(i, "flow.kind")) {
        function.emitOpError("result ") << i << " has no flow.kind";
        return signalPassFailure();
      }
  }
  WalkResult result = getOperation()->walk([](Operation *op) {
    return failed(checkOp(op)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (result.wasInterrupted())
    signalPassFailure();
}
