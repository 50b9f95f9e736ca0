// What changing a value's SBP along one mesh axis costs.
#include "lib/Planning/BoxingCost.h"
#include "dialects/Flow/Rules/Signature.h"

using namespace mlir;
using namespace flow;

static double tensorBytes(RankedTensorType type) {
  double elements = 1;
  for (int64_t extent : type.getShape())
    elements *= ShapedType::isDynamic(extent) ? 1 : extent;
  Type element = type.getElementType();
  return elements *
         (element.isIntOrFloat() ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8) : 8);
}

double flow::boxingBytes(RankedTensorType type, SbpAttr from, SbpAttr to, int64_t ranks) {
  double total = tensorBytes(type), others = double(ranks - 1) / ranks;
  // What a rank already has, it keeps or drops; a part of a sum is the value on one
  // rank and zero elsewhere.
  if (from == to || from.isBroadcast() || (from.isSplit() && to.isPartial()))
    return 0;
  if (from.isSplit()) {
    if (to.isBroadcast())
      return others * total;
    int64_t extent = type.getDimSize(from.getDim());
    if (from.getDim() == to.getDim() &&
        haveSameBorders(extent, ranks, from.getUnit(), to.getUnit()))
      return 0;
    return others * total / ranks;
  }
  return to.isSplit() ? others * total : 2 * others * total;
}

double flow::boxingCost(const CostModel &model, RankedTensorType type, SbpAttr from, SbpAttr to,
                        int64_t ranks) {
  if (from == to)
    return 0;
  double bytes = boxingBytes(type, from, to, ranks);
  return bytes + (bytes > 0 ? model.latencyInBytes : model.localBoxing);
}
