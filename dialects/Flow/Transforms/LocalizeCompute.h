// The part of a flow.compute that one rank executes: the same ops on its shards.
#pragma once

#include "dialects/Flow/Rules/Shards.h"
#include "dialects/Flow/Rules/Signature.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace flow {

/// What the signature of a flow.compute says about the values and ops inside.
struct RegionSignature {
  MeshAttr mesh;
  /// Entries per mesh axis. Absent: inits and constants, which take the shape
  /// that their user needs.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<SbpAttr>> entries;
  /// The element of values that are the same everywhere.
  llvm::DenseMap<mlir::Value, mlir::Attribute> uniform;
  /// Per mesh axis the split loop of a linalg op.
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<LoopSplit>> loops;

  bool has(mlir::Value value) const { return entries.contains(value); }
  /// The shard of a value with entries, of its global shape.
  Shard shardOf(mlir::Value value, const RankBox &box) const;
  /// The part of the iteration space of a linalg op.
  Shard loopsOf(mlir::Operation *op, const RankBox &box) const;
};

/// Infers the signature from the types at both ends; an error if it is not legal.
mlir::FailureOr<RegionSignature> inferRegionSignature(ComputeOp op);

/// Adds how the values and loops of the region are cut.
void collectSplitChains(const RegionSignature &signature,
                        llvm::SmallVectorImpl<SplitChain> &chains);

/// Emits what the ranks of `box` execute. `inputs` are the operands' shards,
/// `coordinates` the rank's, one per mesh axis.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
localizeCompute(mlir::OpBuilder &b, ComputeOp op, const RegionSignature &signature,
                const RankBox &box, mlir::ValueRange inputs,
                mlir::ArrayRef<mlir::OpFoldResult> coordinates);

/// Values of affine expressions over the coordinates.
llvm::SmallVector<mlir::OpFoldResult>
materializeOffsets(mlir::OpBuilder &b, mlir::Location loc, mlir::ArrayRef<mlir::AffineExpr> offsets,
                   mlir::ArrayRef<mlir::OpFoldResult> coordinates);

/// Marks the ops of a block behind `last` (null: all) as part of `phase`.
void tagPhase(mlir::Block *block, mlir::Operation *last, PhaseAttr phase);

} // namespace flow
