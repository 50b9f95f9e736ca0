// What a rank holds of a distributed value.
#include "dialects/Flow/Rules/Shards.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace flow;

RankBox RankBox::single(ArrayRef<int64_t> coordinates) {
  RankBox box;
  for (int64_t c : coordinates) {
    box.lo.push_back(c);
    box.hi.push_back(c + 1);
  }
  return box;
}

RankBox RankBox::at(size_t axis, int64_t coordinate) const {
  RankBox box = *this;
  box.lo[axis] = coordinate;
  box.hi[axis] = coordinate + 1;
  return box;
}

Shard Shard::whole(MLIRContext *context, ArrayRef<int64_t> shape) {
  Shard shard;
  shard.sizes.assign(shape.begin(), shape.end());
  shard.offsets.assign(shape.size(), getAffineConstantExpr(0, context));
  return shard;
}

void flow::splitShard(Shard &shard, int64_t dim, int64_t unit, MeshAttr mesh, size_t axis,
                      const RankBox &box) {
  MLIRContext *context = mesh.getContext();
  int64_t ranks = mesh.getAxisSizes()[axis], extent = shard.sizes[dim], lo = box.lo[axis];
  SplitRange range = balancedSplit(extent, ranks, lo, unit);
  AffineExpr offset = getAffineConstantExpr(range.offset, context);
  if (!box.isConstant(axis)) {
    // c * floor(n/p) + min(c, n mod p) units; the minimum is on one side for the
    // whole box. An empty shard's offset is never used.
    int64_t units = llvm::divideCeil(extent, unit);
    int64_t quotient = units / ranks, remainder = units % ranks;
    AffineExpr c = getAffineDimExpr(axis, context);
    offset =
        lo < remainder ? c * ((quotient + 1) * unit) : c * (quotient * unit) + remainder * unit;
  }
  shard.offsets[dim] = shard.offsets[dim] + offset;
  shard.sizes[dim] = range.size;
}

Shard flow::shardOf(ArrayRef<int64_t> shape, ArrayRef<SbpAttr> sbp, MeshAttr mesh,
                    const RankBox &box) {
  Shard shard = Shard::whole(mesh.getContext(), shape);
  for (auto [axis, entry] : llvm::enumerate(sbp))
    if (entry.isSplit())
      splitShard(shard, entry.getDim(), entry.getUnit(), mesh, axis, box);
  return shard;
}

Shard flow::shardOf(DistType type, const RankBox &box) {
  return shardOf(type.getShape(), type.getSbp(), type.getMesh(), box);
}

RankedTensorType flow::localTypeOf(DistType type, const RankBox &box) {
  return shardOf(type, box).getType(type.getElementType());
}

/// First peers of runs of equal sizes, in order, beginning with 0.
static SmallVector<int64_t> runBorders(int64_t extent, int64_t ranks, int64_t unit) {
  int64_t units = llvm::divideCeil(extent, unit);
  SmallVector<int64_t> borders{0, units % ranks};
  if (extent % unit) { // the holder of the incomplete unit stands alone
    int64_t holder = std::min(units, ranks) - 1;
    borders.append({holder, holder + 1});
  }
  llvm::sort(borders);
  borders.erase(llvm::unique(borders), borders.end());
  while (borders.back() >= ranks)
    borders.pop_back();
  return borders;
}

SmallVector<SplitRun> flow::splitRuns(int64_t extent, int64_t ranks, int64_t unit) {
  SmallVector<int64_t> borders = runBorders(extent, ranks, unit);
  borders.push_back(ranks);
  SmallVector<SplitRun> runs;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    SplitRange piece = balancedSplit(extent, ranks, borders[i], unit);
    runs.push_back({borders[i], borders[i + 1] - borders[i], piece.offset, piece.size});
  }
  return runs;
}

void flow::collectSplitChains(ArrayRef<int64_t> shape, ArrayRef<SbpAttr> sbp,
                              SmallVectorImpl<SplitChain> &chains) {
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    SplitChain chain{extent, {}};
    for (auto [axis, entry] : llvm::enumerate(sbp))
      if (entry.isSplit(dim))
        chain.cuts.emplace_back(axis, entry.getUnit());
    if (!chain.cuts.empty())
      chains.push_back(std::move(chain));
  }
}

/// Boxes for the axes from `axis` on; `chains` hold the extents that outer axes left.
static void cutAxis(MeshAttr mesh, size_t axis, ArrayRef<SplitChain> chains, RankBox &box,
                    SmallVectorImpl<RankBox> &classes) {
  if (axis == mesh.getNumAxes()) {
    classes.push_back(box);
    return;
  }
  int64_t ranks = mesh.getAxisSizes()[axis];
  auto cutOn = [&](const SplitChain &chain) {
    return llvm::find_if(chain.cuts, [&](auto &cut) { return cut.first == axis; });
  };
  SmallVector<int64_t> borders{0, ranks};
  for (const SplitChain &chain : chains)
    if (auto cut = cutOn(chain); cut != chain.cuts.end())
      llvm::append_range(borders, runBorders(chain.extent, ranks, cut->second));
  llvm::sort(borders);
  borders.erase(llvm::unique(borders), borders.end());
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    box.lo[axis] = borders[i];
    box.hi[axis] = borders[i + 1];
    SmallVector<SplitChain> inner(chains);
    for (SplitChain &chain : inner)
      if (auto cut = cutOn(chain); cut != chain.cuts.end())
        chain.extent = balancedSplit(chain.extent, ranks, borders[i], cut->second).size;
    cutAxis(mesh, axis + 1, inner, box, classes);
  }
}

SmallVector<RankBox> flow::rankClasses(MeshAttr mesh, SmallVector<SplitChain> chains) {
  llvm::sort(chains);
  chains.erase(llvm::unique(chains), chains.end());
  RankBox box{SmallVector<int64_t>(mesh.getNumAxes()), SmallVector<int64_t>(mesh.getNumAxes())};
  SmallVector<RankBox> classes;
  cutAxis(mesh, 0, chains, box, classes);
  return classes;
}
