// Reshapes, slices, pads, concatenation, softmax, constants and everything else.
#include "dialects/Flow/Rules/Access.h"
#include "dialects/Flow/Rules/Monoids.h"
#include "dialects/Flow/Rules/Rules.h"
#include "dialects/Flow/Rules/SliceDims.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flow;

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

std::pair<int64_t, int64_t> flow::leadOfGroup(ArrayRef<int64_t> shape, ArrayRef<int64_t> group) {
  int64_t lead = -1, inner = 1;
  for (int64_t d : group) {
    if (lead >= 0)
      inner *= shape[d];
    else if (shape[d] != 1)
      lead = d;
  }
  return {lead >= 0 ? lead : group.front(), inner};
}

/// Dims of the larger tensor of a slice that the slice spans, paired with those
/// of the smaller one.
template <typename SliceOp>
static void spannedDims(SliceOp op, RankedTensorType large,
                        SmallVectorImpl<std::pair<unsigned, unsigned>> &dims) {
  llvm::SmallBitVector dropped = op.getDroppedDims();
  unsigned small = 0;
  for (int64_t d = 0; d < large.getRank(); ++d) {
    if (dropped.test(d))
      continue;
    if (isConstantIntValue(op.getMixedOffsets()[d], 0) &&
        isConstantIntValue(op.getMixedStrides()[d], 1) && !large.isDynamicDim(d) &&
        isConstantIntValue(op.getMixedSizes()[d], large.getDimSize(d)))
      dims.push_back({d, small});
    ++small;
  }
}

SmallVector<DimPair> flow::passingDims(Operation *op) {
  SmallVector<DimPair> pairs;
  auto all = [&](OpOperand &operand, llvm::function_ref<bool(int64_t)> passes) {
    int64_t rank = cast<RankedTensorType>(operand.get().getType()).getRank();
    for (int64_t d = 0; d < rank; ++d)
      if (passes(d))
        pairs.push_back({&operand, static_cast<unsigned>(d), static_cast<unsigned>(d)});
  };
  TypeSwitch<Operation *>(op)
      .Case<tensor::PadOp>([&](tensor::PadOp pad) {
        all(pad.getSourceMutable(), [&](int64_t d) { return !pad.getPaddedDims().test(d); });
      })
      .Case<tensor::ConcatOp>([&](tensor::ConcatOp concat) {
        for (OpOperand &operand : concat->getOpOperands())
          all(operand, [&](int64_t d) { return d != static_cast<int64_t>(concat.getDim()); });
      })
      .Case<linalg::SoftmaxOp>([&](linalg::SoftmaxOp softmax) {
        for (OpOperand &operand : softmax->getOpOperands())
          all(operand,
              [&](int64_t d) { return d != static_cast<int64_t>(softmax.getDimension()); });
      })
      .Case<tensor::CastOp>([&](tensor::CastOp cast) {
        if (cast.getType() == cast.getSource().getType())
          all(cast.getSourceMutable(), [](int64_t) { return true; });
      })
      .Case<tensor::ExtractSliceOp>([&](tensor::ExtractSliceOp slice) {
        SmallVector<std::pair<unsigned, unsigned>> dims;
        spannedDims(slice, slice.getSourceType(), dims);
        for (auto [large, small] : dims)
          pairs.push_back({&slice.getSourceMutable(), large, small});
      })
      .Case<tensor::InsertSliceOp>([&](tensor::InsertSliceOp slice) {
        SmallVector<std::pair<unsigned, unsigned>> dims;
        spannedDims(slice, slice.getDestType(), dims);
        for (auto [large, small] : dims) {
          pairs.push_back({&slice.getSourceMutable(), small, large});
          pairs.push_back({&slice.getDestMutable(), large, large});
        }
      });
  return pairs;
}

//===----------------------------------------------------------------------===//
// Transfer
//===----------------------------------------------------------------------===//

/// A group of dims of the wide side against one dim of the narrow side: the split
/// of the group's outermost dim in units is a split of the narrow dim in units
/// times what lies inside.
static LogicalResult inferReshape(Operation *op, ArrayRef<ReassociationIndices> groups,
                                  bool expands, AxisInfo &info) {
  AxisState s = info.get(op->getOperand(0));
  if (s.kind != AxisState::Held || !s.sbp.isSplit()) {
    info.states[op->getResult(0)] = s;
    return success();
  }
  auto wide = cast<RankedTensorType>((expands ? op->getResult(0) : op->getOperand(0)).getType());
  if (!wide.hasStaticShape())
    return refuse(info, op, "a reshape of dynamic dims is not split");
  for (auto [narrow, group] : llvm::enumerate(groups)) {
    auto [lead, inner] = leadOfGroup(wide.getShape(), group);
    if (s.sbp.getDim() != (expands ? static_cast<int64_t>(narrow) : lead))
      continue;
    int64_t unit = s.sbp.getUnit();
    if (inner == 0 || (expands && unit % inner))
      return refuse(
          info, op,
          s.sbp.str() + " cuts the dims inside; " +
              SbpAttr::split(op->getContext(), narrow, std::max<int64_t>(inner, 1)).str() +
              " would not");
    s.sbp = SbpAttr::split(op->getContext(), expands ? lead : static_cast<int64_t>(narrow),
                           expands ? unit / inner : unit * inner);
    info.states[op->getResult(0)] = s;
    return success();
  }
  return refuse(info, op, s.sbp.str() + " splits a dim that another one encloses");
}

/// Ops that only move elements: one state for all, along passing dims. `constant`
/// is the element that they add (null: none).
static LogicalResult inferMove(Operation *op, bool addsElements, Attribute element,
                               AxisInfo &info) {
  MLIRContext *context = op->getContext();
  SmallVector<DimPair> pairs = passingDims(op);
  std::optional<SbpAttr> result; // S or P, as soon as an operand says so
  auto toResult = [&](OpOperand &operand, SbpAttr sbp) -> SbpAttr {
    for (const DimPair &pair : pairs)
      if (pair.operand == &operand && sbp.isSplit(pair.operandDim))
        return SbpAttr::split(context, pair.resultDim, sbp.getUnit());
    return {};
  };
  for (OpOperand &operand : op->getOpOperands()) {
    AxisState s = info.get(operand.get());
    if (s.kind != AxisState::Held || s.sbp.isBroadcast())
      continue;
    SbpAttr own = s.sbp.isPartial() ? s.sbp : toResult(operand, s.sbp);
    if (!own)
      return refuse(info, op,
                    "operand " + Twine(operand.getOperandNumber()) + " as " + s.sbp.str() +
                        " is split along a dim that it works across");
    if (result && *result != own)
      return refuse(info, op, "its operands are held in different ways");
    result = own;
  }
  if (!result) {
    setResults(op, info, SbpAttr::broadcast(context));
    return success();
  }
  if (result->isPartial() && addsElements && !isNeutral(element, result->getMonoid()))
    return refuse(info, op, "every rank would add its constant to " + result->str());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    AxisState s = info.get(operand.get());
    bool fits = s.kind == AxisState::Undefined ||
                (s.kind == AxisState::Uniform &&
                 (result->isSplit() || isNeutral(s.element, result->getMonoid()))) ||
                (s.kind == AxisState::Held && !s.sbp.isBroadcast()) ||
                (result->isPartial() && isIdempotent(result->getMonoid()));
    if (!fits)
      return refuse(info, op,
                    "operand " + Twine(operand.getOperandNumber()) + " is B beside " +
                        result->str());
  }
  setResults(op, info, *result);
  return success();
}

static LogicalResult inferPad(tensor::PadOp pad, AxisInfo &info) {
  Value padding = pad.getConstantPaddingValue();
  if (!padding)
    return refuse(info, pad, "its padding is not one value");
  Attribute element; // stays null for a value that is known only at run time
  matchPattern(padding, m_Constant(&element));
  return inferMove(pad, /*addsElements=*/true, element, info);
}

/// Inits made of nothing but constants.
static bool inferInit(Operation *op, AxisInfo &info) {
  Attribute constant;
  if (matchPattern(op, m_Constant(&constant))) {
    auto dense = dyn_cast<DenseElementsAttr>(constant);
    AxisState s{AxisState::Held, {}, SbpAttr::broadcast(op->getContext())};
    if (dense && dense.isSplat())
      s = {AxisState::Uniform, dense.getSplatValue<Attribute>(), {}};
    info.states[op->getResult(0)] = s;
    return true;
  }
  if (isa<tensor::EmptyOp>(op)) {
    info.states[op->getResult(0)] = {AxisState::Undefined, {}, {}};
    return true;
  }
  if (auto fill = dyn_cast<linalg::FillOp>(op)) {
    matchPattern(fill.value(), m_Constant(&constant));
    AxisState destination = info.get(fill.output());
    if (destination.kind == AxisState::Held) // a destination from outside keeps its split
      return false;
    info.states[op->getResult(0)] = {AxisState::Uniform, constant, {}};
    return true;
  }
  return false;
}

LogicalResult flow::inferOther(Operation *op, const SplitFactor &split, AxisInfo &info) {
  if (inferInit(op, info))
    return success();
  if (auto l = dyn_cast<linalg::LinalgOp>(op))
    return inferLinalg(l, split, info);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return inferReshape(op, expand.getReassociationIndices(), true, info);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return inferReshape(op, collapse.getReassociationIndices(), false, info);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return inferPad(pad, info);
  if (isa<tensor::ConcatOp, tensor::ExtractSliceOp, tensor::InsertSliceOp>(op))
    return inferMove(op, false, {}, info);
  if (auto cast = dyn_cast<tensor::CastOp>(op);
      cast && cast.getType() == cast.getSource().getType())
    return inferMove(op, false, {}, info);
  if (isa<linalg::SoftmaxOp>(op)) {
    for (Value v : op->getOperands())
      if (AxisState s = info.get(v); s.kind == AxisState::Held && s.sbp.isPartial())
        return refuse(info, op, "it is neither linear nor monotone");
    return inferMove(op, false, {}, info);
  }
  // Anything else, scalars among it: only where every operand is whole.
  SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  for (Value v : values)
    if (AxisState s = info.get(v); s.kind == AxisState::Held && !s.sbp.isBroadcast())
      return refuse(info, op, "no rule for an operand held as " + s.sbp.str());
  setResults(op, info, SbpAttr::broadcast(op->getContext()));
  return success();
}
