// Steps of a boxing path as code of one rank class.
//
// Collectives move one block per member, of one size. Peers may be in other
// classes, so the sizes of blocks and pieces come from the global extent, never
// from local types. A balanced split has few runs of equal pieces: the code grows
// with the runs, not with the ranks.
#include "lib/Conversion/FlowToCCL/BoxingToCCL.h"
#include "dialects/CCL/IR/CCLOps.h"
#include "dialects/Flow/Rules/Monoids.h"
#include "dialects/Flow/Transforms/LocalizeCompute.h"
#include "dialects/Flow/Transforms/Redistribute.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flow;

namespace {
class StepEmitter {
public:
  StepEmitter(OpBuilder &b, Location loc, const BoxingStep &step, const RankBox &box,
              ArrayRef<OpFoldResult> coordinates)
      : b(b), loc(loc), step(step), box(box), coordinates(coordinates), mesh(step.from.getMesh()),
        element(step.from.getElementType()) {}

  Value emit(Value local);

private:
  Value slice(Value local);
  Value keepPart(Value local);
  Value allReduce(Value local);
  Value allGather(Value local);
  Value reduceScatter(Value local);
  Value allToAll(Value local);

  SbpAttr before(size_t axis) const { return step.from.getSbp()[axis]; }
  SbpAttr after(size_t axis) const { return step.to.getSbp()[axis]; }
  SmallVector<int64_t> blockShape() const;
  /// The part of `sizes` that the rank's coordinates on the step's axes select.
  Shard cut(ArrayRef<int64_t> sizes, ArrayRef<SbpAttr> sbp) const;

  Value packPieces(Value tile, size_t leads, size_t level, ArrayRef<int64_t> block);
  Value unpackPieces(Value blocks, SmallVector<SplitRun> runs, SmallVector<int64_t> extents);
  Value pack(Value tile, ArrayRef<int64_t> block);
  Value unpack(Value blocks, ArrayRef<int64_t> block);

  Value padding(ArrayRef<int64_t> shape);
  Value padTo(Value value, ArrayRef<int64_t> shape);
  Value sliceDim(Value value, size_t dim, int64_t offset, int64_t size);
  Value moveDim(Value value, size_t from, size_t to);
  Value splitDim(Value value, size_t dim, ArrayRef<int64_t> into);
  Value mergeDims(Value value, size_t first, size_t count);

  int64_t groupSize() const {
    int64_t size = 1;
    for (size_t axis : step.axes)
      size *= mesh.getAxisSizes()[axis];
    return size;
  }
  ArrayAttr axisNames() {
    return b.getArrayAttr(llvm::map_to_vector(
        step.axes, [&](size_t axis) -> Attribute { return mesh.getAxisNames()[axis]; }));
  }
  /// The one dim that all axes of the step split in `type`, and its extent.
  std::pair<IntegerAttr, IntegerAttr> servedDim(DistType type) {
    int64_t dim = type.getSbp()[step.axes[0]].getDim();
    for (size_t axis : step.axes)
      if (!type.getSbp()[axis].isSplit(dim))
        return {};
    return {b.getI64IntegerAttr(type.getShape()[dim]), b.getI64IntegerAttr(dim)};
  }
  ccl::ReductionAttr reduction() {
    auto how = static_cast<ccl::Reduction>(before(step.axes[0]).getMonoid());
    return ccl::ReductionAttr::get(b.getContext(), how);
  }
  Value emptyOf(ArrayRef<int64_t> shape) { return tensor::EmptyOp::create(b, loc, shape, element); }
  Value emptyBlocks(ArrayRef<int64_t> block) {
    SmallVector<int64_t> shape{groupSize()};
    llvm::append_range(shape, block);
    return emptyOf(shape);
  }

  OpBuilder &b;
  Location loc;
  const BoxingStep &step;
  const RankBox &box;
  ArrayRef<OpFoldResult> coordinates;
  MeshAttr mesh;
  Type element;
};
} // namespace

static_assert(static_cast<int>(Monoid::Sum) == static_cast<int>(ccl::Reduction::Sum) &&
              static_cast<int>(Monoid::Max) == static_cast<int>(ccl::Reduction::Max) &&
              static_cast<int>(Monoid::Min) == static_cast<int>(ccl::Reduction::Min) &&
              static_cast<int>(Monoid::Prod) == static_cast<int>(ccl::Reduction::Prod));

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}
static bool hasZero(ArrayRef<int64_t> shape) {
  return llvm::is_contained(shape, 0);
}

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

/// What lies between pieces and blocks: never read, except by a reduction.
Value StepEmitter::padding(ArrayRef<int64_t> shape) {
  if (step.kind == BoxingKind::ReduceScatter)
    return createNeutral(b, loc, before(step.axes[0]).getMonoid(),
                         RankedTensorType::get(shape, element));
  return emptyOf(shape);
}

Value StepEmitter::padTo(Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  Value into = padding(shape);
  if (hasZero(shapeOf(value)))
    return into;
  SmallVector<OpFoldResult> zeros(shape.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(shape.size(), b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(
      b, loc, value, into, zeros, getAsIndexOpFoldResult(b.getContext(), shapeOf(value)), ones);
}

Value StepEmitter::sliceDim(Value value, size_t dim, int64_t offset, int64_t size) {
  SmallVector<int64_t> sizes(shapeOf(value));
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  sizes[dim] = size;
  offsets[dim] = b.getIndexAttr(offset);
  return extractPart(b, loc, value, offsets, sizes);
}

Value StepEmitter::moveDim(Value value, size_t from, size_t to) {
  if (from == to)
    return value;
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, shapeOf(value).size()));
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  SmallVector<int64_t> shape =
      llvm::map_to_vector(order, [&](int64_t dim) { return shapeOf(value)[dim]; });
  return linalg::TransposeOp::create(b, loc, value, emptyOf(shape), order)->getResult(0);
}

Value StepEmitter::splitDim(Value value, size_t dim, ArrayRef<int64_t> into) {
  SmallVector<ReassociationIndices> groups;
  SmallVector<int64_t> shape;
  for (auto [i, extent] : llvm::enumerate(shapeOf(value))) {
    ReassociationIndices &group = groups.emplace_back();
    for (int64_t part : i == dim ? into : ArrayRef(extent)) {
      group.push_back(shape.size());
      shape.push_back(part);
    }
  }
  return tensor::ExpandShapeOp::create(b, loc, RankedTensorType::get(shape, element), value,
                                       groups);
}

Value StepEmitter::mergeDims(Value value, size_t first, size_t count) {
  if (count == 1)
    return value;
  SmallVector<ReassociationIndices> groups;
  for (size_t i = 0, rank = shapeOf(value).size(); i < rank; ++i)
    if (i > first && i < first + count)
      groups.back().push_back(i);
    else
      groups.push_back({static_cast<int64_t>(i)});
  return tensor::CollapseShapeOp::create(b, loc, value, groups);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// The largest piece that any member of the group sends: coordinate 0 has it.
SmallVector<int64_t> StepEmitter::blockShape() const {
  RankBox first = box;
  for (size_t axis : step.axes)
    first = first.at(axis, 0);
  SmallVector<int64_t> source = shardOf(step.from, first).sizes,
                       target = shardOf(step.to, first).sizes;
  for (size_t axis : step.axes)
    if (after(axis).isSplit())
      source[after(axis).getDim()] = target[after(axis).getDim()];
  return source;
}

/// [leads.., tile] -> [leads.., members of the axes from `level` on.., block].
Value StepEmitter::packPieces(Value tile, size_t leads, size_t level, ArrayRef<int64_t> block) {
  ArrayRef<int64_t> shape = shapeOf(tile);
  if (level == step.axes.size()) {
    SmallVector<int64_t> padded(shape.take_front(leads));
    llvm::append_range(padded, block);
    return padTo(tile, padded);
  }
  size_t axis = step.axes[level], dim = leads + after(axis).getDim();
  SmallVector<Value> pieces;
  for (const SplitRun &run :
       splitRuns(shape[dim], mesh.getAxisSizes()[axis], after(axis).getUnit())) {
    if (run.size == 0) {
      SmallVector<int64_t> filler(shape.take_front(leads));
      filler.push_back(run.count);
      for (size_t inner = level + 1; inner < step.axes.size(); ++inner)
        filler.push_back(mesh.getAxisSizes()[step.axes[inner]]);
      llvm::append_range(filler, block);
      pieces.push_back(padding(filler));
      continue;
    }
    Value piece = sliceDim(tile, dim, run.offset, run.count * run.size);
    if (run.count == 1) // no transpose for a unit dim
      piece = splitDim(piece, leads, {1, shapeOf(piece)[leads]});
    else
      piece = moveDim(splitDim(piece, dim, {run.count, run.size}), dim, leads);
    pieces.push_back(packPieces(piece, leads + 1, level + 1, block));
  }
  return concatenate(b, loc, leads, pieces);
}

/// One block per member, in mesh order, from the rank's tile.
Value StepEmitter::pack(Value tile, ArrayRef<int64_t> block) {
  if (hasZero(block))
    return emptyBlocks(block);
  if (hasZero(shapeOf(tile))) {
    SmallVector<int64_t> shape{groupSize()};
    llvm::append_range(shape, block);
    return padding(shape);
  }
  return mergeDims(packPieces(tile, 0, 0, block), 0, step.axes.size());
}

/// [members.., block] -> [chosen members.., tile]: those of `runs` on the first
/// axes, all of the others as one tile of sizes `extents`.
Value StepEmitter::unpackPieces(Value blocks, SmallVector<SplitRun> runs,
                                SmallVector<int64_t> extents) {
  size_t leads = runs.size();
  if (leads == step.axes.size()) {
    SmallVector<OpFoldResult> offsets;
    SmallVector<int64_t> sizes;
    for (const SplitRun &run : runs) {
      offsets.push_back(b.getIndexAttr(run.first));
      sizes.push_back(run.count);
    }
    offsets.append(extents.size(), b.getIndexAttr(0));
    llvm::append_range(sizes, extents);
    return extractPart(b, loc, blocks, offsets, sizes);
  }
  size_t axis = step.axes[leads], dim = before(axis).getDim();
  SmallVector<Value> pieces;
  for (const SplitRun &run :
       splitRuns(extents[dim], mesh.getAxisSizes()[axis], before(axis).getUnit())) {
    if (run.size == 0)
      continue;
    SmallVector<int64_t> inner = extents;
    inner[dim] = run.size;
    SmallVector<SplitRun> chosen = runs;
    chosen.push_back(run);
    Value piece = unpackPieces(blocks, chosen, inner);
    // Member dim next to the dim that it cuts, then both are one.
    piece = run.count == 1 ? mergeDims(piece, leads, 2)
                           : mergeDims(moveDim(piece, leads, leads + dim), leads + dim, 2);
    pieces.push_back(piece);
  }
  return concatenate(b, loc, leads + dim, pieces);
}

Value StepEmitter::unpack(Value blocks, ArrayRef<int64_t> block) {
  SmallVector<int64_t> tile = shardOf(step.to, box).sizes;
  if (hasZero(tile))
    return emptyOf(tile);
  SmallVector<int64_t> members;
  for (size_t axis : step.axes)
    members.push_back(mesh.getAxisSizes()[axis]);
  if (members.size() > 1)
    blocks = splitDim(blocks, 0, members);
  return unpackPieces(blocks, {}, tile);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Shard StepEmitter::cut(ArrayRef<int64_t> sizes, ArrayRef<SbpAttr> sbp) const {
  Shard shard = Shard::whole(b.getContext(), sizes);
  for (size_t axis : step.axes)
    splitShard(shard, sbp[axis].getDim(), sbp[axis].getUnit(), mesh, axis, box);
  return shard;
}

Value StepEmitter::slice(Value local) {
  Shard shard = cut(shapeOf(local), step.to.getSbp());
  return extractPart(b, loc, local, materializeOffsets(b, loc, shard.offsets, coordinates),
                     shard.sizes);
}

Value StepEmitter::keepPart(Value local) {
  SmallVector<int64_t> whole = shardOf(step.to, box).sizes;
  RankedTensorType type = RankedTensorType::get(whole, element);
  Monoid monoid = after(step.axes[0]).getMonoid();
  if (before(step.axes[0]).isSplit()) { // the rank's shard among neutral elements
    Value into = createNeutral(b, loc, monoid, type);
    if (hasZero(shapeOf(local)))
      return into;
    Shard shard = cut(whole, step.from.getSbp());
    SmallVector<OpFoldResult> ones(whole.size(), b.getIndexAttr(1));
    return tensor::InsertSliceOp::create(b, loc, local, into,
                                         materializeOffsets(b, loc, shard.offsets, coordinates),
                                         getAsIndexOpFoldResult(b.getContext(), shard.sizes), ones);
  }
  // The first rank of the group keeps the value.
  SmallVector<Value> unknown;
  for (size_t axis : step.axes) {
    if (box.lo[axis] > 0)
      return createNeutral(b, loc, monoid, type);
    if (!box.isConstant(axis))
      unknown.push_back(cast<Value>(coordinates[axis]));
  }
  if (unknown.empty())
    return local;
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &nested, Location, ValueRange arguments) {
    Value zero = arith::ConstantIndexOp::create(nested, loc, 0);
    Value neutral = arith::ConstantOp::create(nested, loc, neutralElement(monoid, element));
    Value value = arguments[0];
    for (Value coordinate : unknown) {
      Value first = arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::eq, coordinate, zero);
      value = arith::SelectOp::create(nested, loc, first, value, neutral);
    }
    linalg::YieldOp::create(nested, loc, value);
  };
  return linalg::GenericOp::create(b, loc, type, local, emptyOf(whole), ArrayRef{map, map},
                                   iterators, body)
      .getResult(0);
}

Value StepEmitter::allReduce(Value local) {
  return ccl::AllReduceOp::create(b, loc, local.getType(), reduction(), local,
                                  emptyOf(shapeOf(local)), axisNames());
}

Value StepEmitter::allGather(Value local) {
  SmallVector<int64_t> block = blockShape();
  Value padded = padTo(local, block), init = emptyBlocks(block);
  auto [global, dim] = servedDim(step.from);
  Value blocks =
      ccl::AllGatherOp::create(b, loc, init.getType(), padded, init, axisNames(), global, dim);
  return unpack(blocks, block);
}

Value StepEmitter::reduceScatter(Value local) {
  SmallVector<int64_t> block = blockShape();
  Value blocks = pack(local, block), init = emptyOf(block);
  auto [global, dim] = servedDim(step.to);
  Value own = ccl::ReduceScatterOp::create(b, loc, init.getType(), reduction(), blocks, init,
                                           axisNames(), global, dim);
  return extractPart(b, loc, own, SmallVector<OpFoldResult>(block.size(), b.getIndexAttr(0)),
                     shardOf(step.to, box).sizes);
}

Value StepEmitter::allToAll(Value local) {
  SmallVector<int64_t> block = blockShape();
  Value blocks = pack(local, block), init = emptyBlocks(block);
  auto [global, dim] = servedDim(step.to);
  Value received =
      ccl::AllToAllOp::create(b, loc, init.getType(), blocks, init, axisNames(), global, dim);
  return unpack(received, block);
}

Value StepEmitter::emit(Value local) {
  switch (step.kind) {
  case BoxingKind::Relabel:
  case BoxingKind::Send:
    return local;
  case BoxingKind::Slice:
    return slice(local);
  case BoxingKind::KeepPart:
    return keepPart(local);
  case BoxingKind::AllReduce:
    return allReduce(local);
  case BoxingKind::ReduceScatter:
    return reduceScatter(local);
  case BoxingKind::AllGather:
    return allGather(local);
  case BoxingKind::AllToAll:
    return allToAll(local);
  }
  return local;
}

Value flow::emitBoxingStep(OpBuilder &b, Location loc, const BoxingStep &step, const RankBox &box,
                           ArrayRef<OpFoldResult> coordinates, Value local) {
  return StepEmitter(b, loc, step, box, coordinates).emit(local);
}
