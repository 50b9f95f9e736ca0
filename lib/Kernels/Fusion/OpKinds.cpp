#include "lib/Kernels/Fusion/OpKinds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

bool flow::isPointwise(linalg::GenericOp op) {
  return op.getNumReductionLoops() == 0 && op.getNumDpsInits() == 1 &&
         op.getIndexingMapsArray().back().isPermutation() &&
         op.getRegionOutputArgs()[0].use_empty();
}

static Value throughWidening(Value value) {
  while (auto ext = value.getDefiningOp<arith::ExtFOp>())
    value = ext.getIn();
  return value;
}

bool flow::isMulAdd(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return false;
  Block *block = op.getBlock();
  if (block->getNumArguments() != 3)
    return false;
  auto add = block->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add)
    return false;
  Value a = block->getArgument(0), b = block->getArgument(1), acc = block->getArgument(2);
  for (unsigned side : {0u, 1u}) {
    auto mul = add->getOperand(side).getDefiningOp<arith::MulFOp>();
    if (!mul || add->getOperand(1 - side) != acc)
      continue;
    Value x = throughWidening(mul.getLhs()), y = throughWidening(mul.getRhs());
    if ((x == a && y == b) || (x == b && y == a))
      return true;
  }
  return false;
}

bool flow::isTileContraction(linalg::LinalgOp op) {
  if (!isMulAdd(op))
    return false;
  for (OpOperand &operand : op->getOpOperands())
    if (!isa<RankedTensorType>(operand.get().getType()))
      return false;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  bool rows = false, columns = false, sums = false;
  for (unsigned d = 0; d < op.getNumLoops(); ++d) {
    bool a = maps[0].isFunctionOfDim(d), b = maps[1].isFunctionOfDim(d),
         c = maps[2].isFunctionOfDim(d);
    rows |= c && a && !b;
    columns |= c && b && !a;
    sums |= a && b;
  }
  return rows && columns && sums;
}

Operation *flow::reductionCombiner(linalg::LinalgOp op) {
  if (op.getNumDpsInits() != 1)
    return nullptr;
  Block *block = op.getBlock();
  Value acc = op.getRegionOutputArgs()[0];
  Operation *combiner = block->getTerminator()->getOperand(0).getDefiningOp();
  if (!combiner || combiner->getBlock() != block || combiner->getNumOperands() != 2 ||
      !acc.hasOneUse() || *acc.user_begin() != combiner)
    return nullptr;
  return combiner;
}

bool flow::hasOnlyProjectedMaps(linalg::LinalgOp op) {
  return llvm::all_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isProjectedPermutation(); });
}
