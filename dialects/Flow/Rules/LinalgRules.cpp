// Linalg ops: splits follow from indexing maps, iterator types and combiners.
#include "dialects/Flow/Rules/Access.h"
#include "dialects/Flow/Rules/Monoids.h"
#include "dialects/Flow/Rules/Rules.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace flow;
using linalg::LinalgOp;

//===----------------------------------------------------------------------===//
// Access
//===----------------------------------------------------------------------===//

/// Adds `scale * expr` to coefficients (one per loop) and a constant.
static bool addLinear(AffineExpr expr, int64_t scale, MutableArrayRef<int64_t> coefficients,
                      int64_t &constant) {
  if (auto d = dyn_cast<AffineDimExpr>(expr)) {
    coefficients[d.getPosition()] += scale;
    return true;
  }
  if (auto c = dyn_cast<AffineConstantExpr>(expr)) {
    constant += scale * c.getValue();
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (binary.getKind() == AffineExprKind::Add)
    return addLinear(binary.getLHS(), scale, coefficients, constant) &&
           addLinear(binary.getRHS(), scale, coefficients, constant);
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return binary.getKind() == AffineExprKind::Mul && factor &&
         addLinear(binary.getLHS(), scale * factor.getValue(), coefficients, constant);
}

/// Elements of `dim` per iteration of `loop` if iterations read disjoint
/// consecutive runs of it, else 0.
static int64_t strideOf(LinalgOp op, OpOperand &operand, unsigned dim, unsigned loop) {
  AffineExpr expr = op.getMatchingIndexingMap(&operand).getResult(dim);
  if (auto d = dyn_cast<AffineDimExpr>(expr))
    return d.getPosition() == loop;
  SmallVector<int64_t> coefficients(op.getNumLoops(), 0), extents = op.getStaticLoopRanges();
  int64_t reach = 1;
  if (!addLinear(expr, 1, coefficients, reach) || reach < 1)
    return 0;
  int64_t stride = coefficients[loop];
  for (unsigned l = 0; l < coefficients.size(); ++l) {
    if (l == loop || coefficients[l] == 0)
      continue;
    if (coefficients[l] < 0 || ShapedType::isDynamic(extents[l]))
      return 0;
    reach += coefficients[l] * std::max<int64_t>(extents[l] - 1, 0);
  }
  int64_t extent = op.getShape(&operand)[dim];
  if (stride < 1 || reach > stride || ShapedType::isDynamic(extent))
    return 0;
  return (extent + stride - 1) / stride == extents[loop] ? stride : 0;
}

SplitOfOperand flow::splitOfOperand(LinalgOp op, OpOperand &operand, unsigned loop) {
  SplitOfOperand split{SplitOfOperand::Whole};
  for (auto [i, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
    if (!expr.isFunctionOfDim(loop))
      continue;
    int64_t stride = strideOf(op, operand, i, loop);
    if (stride == 0 || split.kind != SplitOfOperand::Whole)
      return {SplitOfOperand::Tangled};
    split = {SplitOfOperand::Split, static_cast<unsigned>(i), stride};
  }
  return split;
}

std::optional<std::pair<unsigned, int64_t>> flow::loopOfDim(LinalgOp op, OpOperand &operand,
                                                            unsigned dim) {
  AffineExpr expr = op.getMatchingIndexingMap(&operand).getResult(dim);
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (expr.isFunctionOfDim(loop))
      if (int64_t stride = strideOf(op, operand, dim, loop))
        return std::make_pair(loop, stride);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Transfer
//===----------------------------------------------------------------------===//

/// The loop that the states of the operands, or the factor, ask to split.
static LogicalResult findLoop(LinalgOp op, const SplitFactor &split, AxisInfo &info,
                              LoopSplit &found) {
  auto choose = [&](unsigned loop, int64_t unit) {
    if (found.loop >= 0 && (found.loop != static_cast<int>(loop) || found.unit != unit))
      return refuse(info, op, "its operands are split along different loops or in different units");
    found = {static_cast<int>(loop), unit};
    return success();
  };
  for (OpOperand &operand : op->getOpOperands()) {
    AxisState s = info.get(operand.get());
    if (s.kind != AxisState::Held || !s.sbp.isSplit())
      continue;
    auto loop = loopOfDim(op, operand, s.sbp.getDim());
    if (!loop || s.sbp.getUnit() % loop->second)
      return refuse(info, op,
                    "operand " + Twine(operand.getOperandNumber()) + " as " + s.sbp.str() +
                        " splits no loop in whole iterations");
    if (failed(choose(loop->first, s.sbp.getUnit() / loop->second)))
      return failure();
  }
  if (!split.factor)
    return success();
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    auto member = split.factors->find(op, loop);
    if (!member || member->factor != *split.factor)
      continue;
    int64_t numerator = member->numerator * split.numerator;
    int64_t denominator = member->denominator * split.denominator;
    if (numerator % denominator)
      return refuse(info, op, "the unit cuts an iteration");
    if (failed(choose(loop, numerator / denominator)))
      return failure();
  }
  return success();
}

/// Result `i` when `loop` is split.
static LogicalResult splitResult(LinalgOp op, unsigned i, LoopSplit loop, AxisInfo &info) {
  MLIRContext *context = op->getContext();
  OpOperand &init = op.getDpsInitsMutable()[i];
  AxisState s = info.get(init.get());
  SplitOfOperand split = splitOfOperand(op, init, loop.loop);
  if (split.kind == SplitOfOperand::Tangled)
    return refuse(info, op, "iterations of a split loop write the same elements");
  if (split.kind == SplitOfOperand::Split) {
    SbpAttr sbp = SbpAttr::split(context, split.dim, loop.unit * split.stride);
    if (s.kind == AxisState::Held && s.sbp != sbp)
      return refuse(info, op,
                    "destination is " + s.sbp.str() + " where " + sbp.str() + " is written");
    info.states[op->getResult(i)] = {AxisState::Held, {}, sbp};
    return success();
  }
  std::optional<Monoid> monoid = combinerOf(op, i);
  if (op.getIteratorTypesArray()[loop.loop] != utils::IteratorType::reduction || !monoid)
    return refuse(info, op, "the split loop has no combiner among sum, max, min and prod");
  SbpAttr sbp = SbpAttr::partial(context, *monoid);
  bool fits = (s.kind == AxisState::Uniform && isNeutral(s.element, *monoid)) ||
              (s.kind == AxisState::Held &&
               (s.sbp == sbp || (s.sbp.isBroadcast() && isIdempotent(*monoid))));
  if (!fits)
    return refuse(info, op, "every rank would add the destination again");
  info.states[op->getResult(i)] = {AxisState::Held, {}, sbp};
  return success();
}

LogicalResult flow::inferLinalg(LinalgOp op, const SplitFactor &split, AxisInfo &info) {
  info.loops[op] = {};
  if (!op.hasPureTensorSemantics())
    return refuse(info, op, "it does not work on tensors alone");
  bool partial = false;
  SetVector<Value> captured; // tables that the body reads: in no indexing map
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value v : captured) {
    AxisState s = info.get(v);
    if (s.kind != AxisState::Held)
      continue;
    partial |= s.sbp.isPartial();
    if (s.sbp.isSplit())
      return refuse(info, op, "its body reads a whole table");
  }
  for (Value v : op->getOperands())
    if (AxisState s = info.get(v); s.kind == AxisState::Held)
      partial |= s.sbp.isPartial();

  LoopSplit loop;
  if (failed(findLoop(op, split, info, loop)))
    return failure();
  if (loop.loop < 0) {
    if (partial)
      return provePartial(op, info);
    setResults(op, info, SbpAttr::broadcast(op->getContext()));
    return success();
  }
  for (Value v : captured)
    if (AxisState s = info.get(v); s.kind == AxisState::Held && s.sbp.isPartial())
      return refuse(info, op, "its body reads a partial table in a split loop");
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AxisState s = info.get(operand->get());
    if (s.kind != AxisState::Held)
      continue;
    SplitOfOperand own = splitOfOperand(op, *operand, loop.loop);
    if (own.kind == SplitOfOperand::Tangled)
      return refuse(info, op,
                    "windows of operand " + Twine(operand->getOperandNumber()) +
                        " overlap along the split loop");
    SbpAttr want = own.kind == SplitOfOperand::Whole
                       ? SbpAttr::broadcast(op->getContext())
                       : SbpAttr::split(op->getContext(), own.dim, loop.unit * own.stride);
    if (s.sbp != want)
      return refuse(info, op,
                    "operand " + Twine(operand->getOperandNumber()) + " is " + s.sbp.str() +
                        " where " + want.str() + " is read");
  }
  for (unsigned i = 0; i < op.getNumDpsInits(); ++i)
    if (failed(splitResult(op, i, loop, info)))
      return failure();
  info.loops[op] = loop;
  return success();
}
