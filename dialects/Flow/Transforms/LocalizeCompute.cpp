// The part of a flow.compute that one rank executes. linalg ops are cloned with
// local operands, not tiled: getTiledImplementation reads size 0 as "untiled" and
// leaves linalg.index unshifted in split reductions.
#include "dialects/Flow/Transforms/LocalizeCompute.h"
#include "dialects/Flow/Rules/Signature.h"
#include "dialects/Flow/Transforms/Redistribute.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flow;
using linalg::LinalgOp;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}
static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Shard RegionSignature::shardOf(Value value, const RankBox &box) const {
  auto it = entries.find(value);
  if (it == entries.end())
    return Shard::whole(value.getContext(), shapeOf(value));
  return flow::shardOf(shapeOf(value), it->second, mesh, box);
}

Shard RegionSignature::loopsOf(Operation *op, const RankBox &box) const {
  Shard shard = Shard::whole(op->getContext(), cast<LinalgOp>(op).getStaticLoopRanges());
  if (auto it = loops.find(op); it != loops.end())
    for (auto [axis, split] : llvm::enumerate(it->second))
      if (split.loop >= 0)
        splitShard(shard, split.loop, split.unit, mesh, axis, box);
  return shard;
}

void flow::collectSplitChains(const RegionSignature &signature,
                              SmallVectorImpl<SplitChain> &chains) {
  for (auto &[value, entries] : signature.entries)
    if (isa<RankedTensorType>(value.getType()))
      collectSplitChains(shapeOf(value), entries, chains);
  for (auto &[op, splits] : signature.loops) {
    SmallVector<int64_t> ranges = cast<LinalgOp>(op).getStaticLoopRanges();
    for (auto [loop, extent] : llvm::enumerate(ranges)) {
      SplitChain chain{extent, {}};
      for (auto [axis, split] : llvm::enumerate(splits))
        if (split.loop == static_cast<int64_t>(loop))
          chain.cuts.emplace_back(axis, split.unit);
      if (!chain.cuts.empty())
        chains.push_back(std::move(chain));
    }
  }
}

SmallVector<OpFoldResult> flow::materializeOffsets(OpBuilder &b, Location loc,
                                                   ArrayRef<AffineExpr> offsets,
                                                   ArrayRef<OpFoldResult> coordinates) {
  SmallVector<OpFoldResult> values;
  for (AffineExpr offset : offsets)
    values.push_back(affine::makeComposedFoldedAffineApply(
        b, loc, AffineMap::get(coordinates.size(), 0, offset), coordinates));
  return values;
}

void flow::tagPhase(Block *block, Operation *last, PhaseAttr phase) {
  if (!phase)
    return;
  Block::iterator from = last ? std::next(last->getIterator()) : block->begin();
  for (Operation &op : llvm::make_range(from, block->end()))
    if (!op.hasTrait<OpTrait::ConstantLike>() && !op.hasTrait<OpTrait::IsTerminator>())
      op.setDiscardableAttr("flow.phase", phase);
}

//===----------------------------------------------------------------------===//
// One rank's ops
//===----------------------------------------------------------------------===//

namespace {
class Localizer {
public:
  Localizer(OpBuilder &b, const RegionSignature &signature, const RankBox &box,
            ArrayRef<OpFoldResult> coordinates)
      : b(b), signature(signature), box(box), coordinates(coordinates) {}

  FailureOr<SmallVector<Value>> run(ComputeOp op, ValueRange inputs);

private:
  LogicalResult localizeOp(Operation &op);
  LogicalResult localizeLinalg(LinalgOp op);
  LogicalResult localizeOther(Operation &op);
  Value localizeExtractSlice(tensor::ExtractSliceOp op, Type type);
  FailureOr<Value> localizeInsertSlice(tensor::InsertSliceOp op);

  /// The local value, or an init or constant made to fit `needed`.
  FailureOr<Value> get(Value global, const Shard &needed, Operation *user);
  FailureOr<Value> getWhole(Value global, Operation *user) {
    return get(global, Shard::whole(b.getContext(), shapeOf(global)), user);
  }
  FailureOr<Shard> operandShard(LinalgOp op, OpOperand &operand, const Shard &loops);
  LogicalResult remapCaptures(Operation *copy);
  SmallVector<OpFoldResult> offsetsOf(const Shard &shard, Location loc) {
    return materializeOffsets(b, loc, shard.offsets, coordinates);
  }

  OpBuilder &b;
  const RegionSignature &signature;
  const RankBox &box;
  ArrayRef<OpFoldResult> coordinates;
  IRMapping locals;
  Block *body = nullptr;
};
} // namespace

/// Inits and constants are made where they are used, in the shape that is needed.
static bool isMadeAtUse(Operation *op) {
  if (isa<tensor::EmptyOp, linalg::FillOp>(op))
    return true;
  return op->hasTrait<OpTrait::ConstantLike>() && isa<RankedTensorType>(op->getResult(0).getType());
}

FailureOr<Value> Localizer::get(Value global, const Shard &needed, Operation *user) {
  if (Value local = locals.lookupOrNull(global)) {
    if (isa<RankedTensorType>(local.getType()) && shapeOf(local) != ArrayRef(needed.sizes))
      return user->emitError("signature gives an operand shards of type ")
             << local.getType() << " where the op needs "
             << needed.getType(tensorOf(global).getElementType());
    return local;
  }
  Location loc = user->getLoc();
  RankedTensorType type = needed.getType(tensorOf(global).getElementType());
  Operation *def = global.getDefiningOp();
  if (!def)
    return user->emitError("operand has no local value");
  if (auto fill = dyn_cast<linalg::FillOp>(def)) {
    Value scalar = locals.lookupOrNull(fill.value());
    if (!scalar)
      return user->emitError("fill of a scalar that has no local value");
    Value init = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
    return linalg::FillOp::create(b, loc, scalar, init).getResult(0);
  }
  DenseElementsAttr elements;
  if (matchPattern(global, m_Constant(&elements))) {
    if (elements.isSplat())
      return arith::ConstantOp::create(b, loc, elements.resizeSplat(type)).getResult();
    return extractPart(b, loc, b.clone(*def)->getResult(0), offsetsOf(needed, loc), needed.sizes);
  }
  if (def->hasTrait<OpTrait::ConstantLike>()) // elements kept elsewhere
    return extractPart(b, loc, b.clone(*def)->getResult(0), offsetsOf(needed, loc), needed.sizes);
  if (isa<tensor::EmptyOp>(def))
    return tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType()).getResult();
  if (Attribute element = signature.uniform.lookup(global)) // a shape op on an init
    return arith::ConstantOp::create(b, loc, SplatElementsAttr::get(type, element)).getResult();
  return user->emitError("cannot make operand of ") << def->getName() << " for a shard";
}

/// What of an init or constant the loops of `op` read.
FailureOr<Shard> Localizer::operandShard(LinalgOp op, OpOperand &operand, const Shard &loops) {
  Shard shard = Shard::whole(b.getContext(), shapeOf(operand.get()));
  SmallVector<int64_t> global = op.getStaticLoopRanges();
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    bool split = false;
    for (unsigned loop = 0; loop < loops.sizes.size(); ++loop)
      split |= expr.isFunctionOfDim(loop) &&
               (loops.sizes[loop] != global[loop] || loops.offsets[loop] != 0);
    if (!split)
      continue;
    if (auto d = dyn_cast<AffineDimExpr>(expr)) {
      shard.offsets[dim] = loops.offsets[d.getPosition()];
      shard.sizes[dim] = loops.sizes[d.getPosition()];
      continue;
    }
    // A window: from the first index that the loops reach to the last.
    SmallVector<AffineExpr> first(loops.offsets), last;
    bool empty = false;
    for (auto [loop, size] : llvm::enumerate(loops.sizes)) {
      empty |= size == 0 && expr.isFunctionOfDim(loop);
      last.push_back(getAffineConstantExpr(size - 1, b.getContext()));
    }
    auto reach = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(expr.replaceDims(last), 0, 0));
    if (!reach)
      return op->emitError("cannot cut operand ")
             << operand.getOperandNumber() << " along its dim " << dim;
    shard.offsets[dim] = simplifyAffineExpr(expr.replaceDims(first), coordinates.size(), 0);
    shard.sizes[dim] = empty ? 0 : reach.getValue() + 1;
  }
  return shard;
}

/// Regions capture hoisted constants, tables that tensor.extract reads, pad values.
LogicalResult Localizer::remapCaptures(Operation *copy) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(copy);
  WalkResult result = copy->walk([&](Operation *inner) {
    if (inner == copy)
      return WalkResult::advance();
    for (OpOperand &use : inner->getOpOperands()) {
      Value global = use.get();
      if (global.getParentBlock() != body)
        continue;
      Value local = locals.lookupOrNull(global);
      if (!local) {
        FailureOr<Value> made = getWhole(global, copy);
        if (failed(made))
          return WalkResult::interrupt();
        local = *made;
      }
      use.set(local);
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult Localizer::localizeLinalg(LinalgOp op) {
  Shard loops = signature.loopsOf(op, box);
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (OpOperand &operand : op->getOpOperands()) {
    Value global = operand.get();
    Value local = locals.lookupOrNull(global);
    if (!local) {
      FailureOr<Shard> needed = operandShard(op, operand, loops);
      if (failed(needed))
        return failure();
      FailureOr<Value> made = get(global, *needed, op);
      if (failed(made))
        return failure();
      local = *made;
    }
    operands.push_back(local);
    if (op.isDpsInit(&operand))
      types.push_back(local.getType());
  }
  SmallVector<OpFoldResult> offsets;
  if (op.hasIndexSemantics())
    offsets = offsetsOf(loops, op.getLoc());
  auto copy = cast<LinalgOp>(mlir::clone(b, op.getOperation(), types, operands));
  if (failed(remapCaptures(copy)))
    return failure();
  if (op.hasIndexSemantics()) {
    OpBuilder::InsertionGuard guard(b);
    linalg::offsetIndices(b, copy, offsets);
  }
  locals.map(op->getResults(), copy->getResults());
  return success();
}

Value Localizer::localizeExtractSlice(tensor::ExtractSliceOp op, Type type) {
  Value source = locals.lookup(op.getSource());
  SmallVector<OpFoldResult> sizes = op.getMixedSizes(), offsets = op.getMixedOffsets();
  for (OpFoldResult &offset : offsets)
    if (auto value = dyn_cast<Value>(offset))
      offset = locals.lookupOrDefault(value);
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (shapeOf(source)[dim] != shapeOf(op.getSource())[dim]) // split: the whole dim is taken
      size = b.getIndexAttr(shapeOf(source)[dim]);
  return tensor::ExtractSliceOp::create(b, op.getLoc(), cast<RankedTensorType>(type), source,
                                        offsets, sizes, op.getMixedStrides());
}

FailureOr<Value> Localizer::localizeInsertSlice(tensor::InsertSliceOp op) {
  FailureOr<Value> dest = get(op.getDest(), signature.shardOf(op.getResult(), box), op);
  if (failed(dest))
    return failure();
  SmallVector<OpFoldResult> sizes = op.getMixedSizes(), offsets = op.getMixedOffsets();
  for (OpFoldResult &offset : offsets)
    if (auto value = dyn_cast<Value>(offset))
      offset = locals.lookupOrDefault(value);
  Shard needed = Shard::whole(b.getContext(), {});
  llvm::SmallBitVector dropped = op.getDroppedDims();
  Shard result = signature.shardOf(op.getResult(), box);
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    bool split = shapeOf(*dest)[dim] != shapeOf(op.getDest())[dim];
    if (split)
      size = b.getIndexAttr(shapeOf(*dest)[dim]);
    if (dropped.test(dim))
      continue;
    needed.sizes.push_back(*getConstantIntValue(size));
    needed.offsets.push_back(split ? result.offsets[dim] : b.getAffineConstantExpr(0));
  }
  FailureOr<Value> source = get(op.getSource(), needed, op);
  if (failed(source))
    return failure();
  if (needed.isEmpty())
    return *dest;
  return tensor::InsertSliceOp::create(b, op.getLoc(), *source, *dest, offsets, sizes,
                                       op.getMixedStrides())
      .getResult();
}

LogicalResult Localizer::localizeOther(Operation &op) {
  SmallVector<Type> types;
  bool empty = op.getNumResults() > 0;
  bool scalars = true;
  for (Value result : op.getResults()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    types.push_back(type ? signature.shardOf(result, box).getType(type.getElementType())
                         : result.getType());
    scalars &= !type;
    empty &= type && cast<RankedTensorType>(types.back()).getNumElements() == 0;
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) // the extent of the whole
    if (std::optional<int64_t> index = dim.getConstantIndex();
        index && *index < tensorOf(dim.getSource()).getRank()) {
      locals.map(dim.getResult(),
                 arith::ConstantIndexOp::create(b, dim.getLoc(), shapeOf(dim.getSource())[*index])
                     .getResult());
      return success();
    }
  if (empty) { // upstream's shape ops do not take empty slices and pieces
    for (auto [result, type] : llvm::zip(op.getResults(), types)) {
      auto tensor = cast<RankedTensorType>(type);
      locals.map(result,
                 tensor::EmptyOp::create(b, op.getLoc(), tensor.getShape(), tensor.getElementType())
                     .getResult());
    }
    return success();
  }
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    FailureOr<Value> value = localizeInsertSlice(insert);
    if (failed(value))
      return failure();
    locals.map(insert.getResult(), *value);
    return success();
  }
  // Inits and constants as operands take the cut of the result where shapes agree.
  for (Value operand : op.getOperands()) {
    if (locals.contains(operand) || !isa<RankedTensorType>(operand.getType()))
      continue;
    Shard needed = Shard::whole(b.getContext(), shapeOf(operand));
    if (!scalars && tensorOf(operand).getRank() == cast<RankedTensorType>(types[0]).getRank()) {
      Shard result = signature.shardOf(op.getResult(0), box);
      for (size_t dim = 0; dim < needed.sizes.size(); ++dim)
        if (result.sizes[dim] != shapeOf(op.getResult(0))[dim]) {
          needed.sizes[dim] = result.sizes[dim];
          needed.offsets[dim] = result.offsets[dim];
        }
    }
    FailureOr<Value> made = get(operand, needed, &op);
    if (failed(made))
      return failure();
    locals.map(operand, *made); // only for this op: shapes differ between users
  }
  Value result =
      TypeSwitch<Operation *, Value>(&op)
          .Case([&](tensor::ExpandShapeOp expand) -> Value {
            return tensor::ExpandShapeOp::create(b, op.getLoc(), types[0],
                                                 locals.lookup(expand.getSrc()),
                                                 expand.getReassociationIndices());
          })
          .Case([&](tensor::CollapseShapeOp collapse) -> Value {
            return tensor::CollapseShapeOp::create(b, op.getLoc(), types[0],
                                                   locals.lookup(collapse.getSrc()),
                                                   collapse.getReassociationIndices());
          })
          .Case([&](tensor::ExtractSliceOp slice) { return localizeExtractSlice(slice, types[0]); })
          .Case([&](tensor::ConcatOp concat) -> Value {
            SmallVector<Value> pieces = llvm::map_to_vector(
                concat.getInputs(), [&](Value piece) { return locals.lookup(piece); });
            return concatenate(b, op.getLoc(), concat.getDim(), pieces);
          })
          .Default([](Operation *) { return Value(); });
  if (result) {
    locals.map(op.getResult(0), result);
  } else {
    Operation *copy = b.clone(op, locals);
    if (failed(remapCaptures(copy)))
      return failure();
    for (auto [value, type] : llvm::zip(copy->getResults(), types))
      value.setType(type);
  }
  for (Value operand : op.getOperands())
    if (Operation *def = operand.getDefiningOp(); def && isMadeAtUse(def))
      locals.erase(operand);
  return success();
}

LogicalResult Localizer::localizeOp(Operation &op) {
  if (isMadeAtUse(&op))
    return success();
  if (op.getNumResults() && llvm::all_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>) &&
      llvm::none_of(op.getResults(), [&](Value v) { return signature.has(v); }))
    return success(); // a shape op on an init
  if (auto linalgOp = dyn_cast<LinalgOp>(op))
    return localizeLinalg(linalgOp);
  return localizeOther(op);
}

FailureOr<RegionSignature> flow::inferRegionSignature(ComputeOp op) {
  FailureOr<SmallVector<AxisInfo>> axes = inferCompute(op);
  if (failed(axes))
    return failure();
  RegionSignature signature;
  for (Type type : op.getResultTypes())
    signature.mesh = cast<DistType>(type).getMesh();
  for (Value value : op.getInputs())
    if (auto type = dyn_cast<DistType>(value.getType()))
      signature.mesh = type.getMesh();
  SbpAttr broadcast = SbpAttr::broadcast(op.getContext());
  auto add = [&](Value value) {
    if (!isa<RankedTensorType>(value.getType()))
      return;
    SmallVector<SbpAttr> entries;
    bool held = false;
    for (const AxisInfo &axis : *axes) {
      AxisState state = axis.get(value);
      held |= state.kind == AxisState::Held;
      entries.push_back(state.kind == AxisState::Held ? state.sbp : broadcast);
      if (state.kind == AxisState::Uniform)
        signature.uniform[value] = state.element;
    }
    if (held)
      signature.entries[value] = std::move(entries);
  };
  Block &body = op.getBody().front();
  for (Value argument : body.getArguments())
    add(argument);
  for (Operation &inner : body.without_terminator()) {
    for (Value result : inner.getResults())
      add(result);
    if (!isa<LinalgOp>(inner))
      continue;
    SmallVector<LoopSplit> &splits = signature.loops[&inner];
    for (const AxisInfo &axis : *axes)
      splits.push_back(axis.loops.lookup(&inner));
  }
  return signature;
}

FailureOr<SmallVector<Value>> Localizer::run(ComputeOp op, ValueRange inputs) {
  body = &op.getBody().front();
  locals.map(body->getArguments(), inputs);
  for (Operation &inner : body->without_terminator())
    if (failed(localizeOp(inner)))
      return failure();
  SmallVector<Value> results;
  for (auto [result, value] : llvm::zip(op.getOutputs(), body->getTerminator()->getOperands())) {
    auto type = cast<DistType>(result.getType());
    FailureOr<Value> local = get(value, flow::shardOf(type, box), op);
    if (failed(local))
      return failure();
    results.push_back(*local);
  }
  return results;
}

FailureOr<SmallVector<Value>> flow::localizeCompute(OpBuilder &b, ComputeOp op,
                                                    const RegionSignature &signature,
                                                    const RankBox &box, ValueRange inputs,
                                                    ArrayRef<OpFoldResult> coordinates) {
  Block *block = b.getInsertionBlock();
  Operation *last = block->empty() ? nullptr : &block->back();
  auto results = Localizer(b, signature, box, coordinates).run(op, inputs);
  if (succeeded(results))
    tagPhase(block, last, op.getPhaseAttr());
  return results;
}
