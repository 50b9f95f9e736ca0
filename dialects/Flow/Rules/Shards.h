// What a rank holds of a distributed value: offsets and sizes per dim, for a box
// of mesh coordinates at once. Only arithmetic on types; no IR is built.
#pragma once

#include "dialects/Flow/IR/FlowTypes.h"
#include "mlir/IR/AffineExpr.h"

namespace flow {

/// The coordinates `lo[i] <= c[i] < hi[i]`, one interval per mesh axis.
struct RankBox {
  llvm::SmallVector<int64_t> lo, hi;

  static RankBox single(llvm::ArrayRef<int64_t> coordinates);
  bool isConstant(size_t axis) const { return hi[axis] - lo[axis] == 1; }
  /// The same box with one coordinate on `axis`.
  RankBox at(size_t axis, int64_t coordinate) const;
  bool operator==(const RankBox &other) const { return lo == other.lo && hi == other.hi; }
};

/// The part of a tensor (or of an iteration space) that the ranks of a box hold.
/// Sizes are those of every rank of the box; an offset is linear in the
/// coordinates, which are the affine dims.
struct Shard {
  llvm::SmallVector<mlir::AffineExpr> offsets;
  llvm::SmallVector<int64_t> sizes;

  static Shard whole(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> shape);
  bool isEmpty() const { return llvm::is_contained(sizes, 0); }
  mlir::RankedTensorType getType(mlir::Type element) const {
    return mlir::RankedTensorType::get(sizes, element);
  }
};

/// Cuts dim `dim` of `shard` over mesh axis `axis` in units of `unit`. All ranks
/// of the box must hold the same size, which is what `rankClasses` arranges.
void splitShard(Shard &shard, int64_t dim, int64_t unit, MeshAttr mesh, size_t axis,
                const RankBox &box);

/// The shard of a value with these entries, one per mesh axis; axes that split
/// one dim nest, the first outermost.
Shard shardOf(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<SbpAttr> sbp, MeshAttr mesh,
              const RankBox &box);
Shard shardOf(DistType type, const RankBox &box);
mlir::RankedTensorType localTypeOf(DistType type, const RankBox &box);

/// Neighbouring peers whose pieces of a balanced split have one size.
struct SplitRun {
  int64_t first, count; // peers
  int64_t offset, size; // of the first piece; of each piece
};
/// The pieces of a balanced split as at most four runs, however many ranks.
llvm::SmallVector<SplitRun> splitRuns(int64_t extent, int64_t ranks, int64_t unit);

/// How one dim of some value or iteration space is cut: (axis, unit) in mesh order.
struct SplitChain {
  int64_t extent;
  llvm::SmallVector<std::pair<size_t, int64_t>> cuts;
  auto operator<=>(const SplitChain &other) const {
    if (auto c = extent <=> other.extent; c != 0)
      return c;
    return std::lexicographical_compare_three_way(cuts.begin(), cuts.end(), other.cuts.begin(),
                                                  other.cuts.end());
  }
  bool operator==(const SplitChain &other) const = default;
};
/// Adds the chains of a value's dims to `chains`.
void collectSplitChains(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<SbpAttr> sbp,
                        llvm::SmallVectorImpl<SplitChain> &chains);

/// Boxes that tile the mesh so that within a box every chain has one size.
llvm::SmallVector<RankBox> rankClasses(MeshAttr mesh, llvm::SmallVector<SplitChain> chains);

} // namespace flow
