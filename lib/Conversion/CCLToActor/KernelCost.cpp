// How much work a kernel function is.
#include "lib/Conversion/CCLToActor/KernelCost.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

int64_t flow::sizeInBytes(RankedTensorType type) {
  if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return 0;
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// A transcendental function costs about as much as this many additions.
constexpr int64_t mathCost = 10;

static int64_t operationsPerPoint(linalg::LinalgOp op) {
  int64_t count = 0;
  for (Operation &inner : op.getBlock()->without_terminator())
    count += inner.getDialect() && inner.getDialect()->getNamespace() == "math" ? mathCost : 1;
  return std::max<int64_t>(1, count);
}

flow::KernelCost flow::estimateCost(func::FuncOp kernel) {
  KernelCost cost;
  for (Type type : kernel.getArgumentTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      cost.bytesMoved += sizeInBytes(tensor);
  for (Type type : kernel.getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      cost.bytesMoved += sizeInBytes(tensor);
  kernel.walk([&](Operation *op) {
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      int64_t points = 1;
      for (int64_t extent : linalgOp.getStaticLoopRanges())
        points *= ShapedType::isDynamic(extent) ? 1 : extent;
      cost.flops += points * operationsPerPoint(linalgOp);
    } else if (isa<linalg::SoftmaxOp>(op)) {
      cost.flops +=
          cast<RankedTensorType>(op->getResult(0).getType()).getNumElements() * 2 * mathCost;
    }
  });
  return cost;
}
