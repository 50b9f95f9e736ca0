// The definition of boxing as tensor code over the values of all ranks: combine
// the parts into the whole, cut the whole into parts. Slow and obviously right:
// lockstep programs and simulated ranks are made of it.
#pragma once

#include "dialects/Flow/Rules/Shards.h"
#include "mlir/IR/Builders.h"

namespace flow {

/// A tensor of that type with the neutral element everywhere.
mlir::Value createNeutral(mlir::OpBuilder &b, mlir::Location loc, Monoid monoid,
                          mlir::RankedTensorType type);

/// The elementwise combination of two tensors.
mlir::Value combinePair(mlir::OpBuilder &b, mlir::Location loc, Monoid monoid, mlir::Value lhs,
                        mlir::Value rhs);

/// The pieces side by side along `dim`; empty ones are dropped.
mlir::Value concatenate(mlir::OpBuilder &b, mlir::Location loc, int64_t dim,
                        mlir::ArrayRef<mlir::Value> pieces);

/// A slice with stride 1; an empty one is a new empty tensor, because
/// `tensor.extract_slice` verifies offset < extent even for size 0.
mlir::Value extractPart(mlir::OpBuilder &b, mlir::Location loc, mlir::Value from,
                        mlir::ArrayRef<mlir::OpFoldResult> offsets, mlir::ArrayRef<int64_t> sizes);

/// The coordinates of every rank of a mesh, row-major.
llvm::SmallVector<llvm::SmallVector<int64_t>> allCoordinates(MeshAttr mesh);

/// The whole value from what the ranks hold, in rank order.
mlir::Value combineParts(mlir::OpBuilder &b, mlir::Location loc, mlir::ArrayRef<mlir::Value> parts,
                         DistType type);

/// What each rank holds of a whole value: of P axes, the first rank has the
/// value and the others the neutral element.
llvm::SmallVector<mlir::Value> cutIntoParts(mlir::OpBuilder &b, mlir::Location loc,
                                            mlir::Value whole, DistType type);

/// The same with a decomposition for P that no wrong rule survives: for sum
/// every rank has a multiple of the value, for max and min the others are near it.
llvm::SmallVector<mlir::Value> cutIntoTestParts(mlir::OpBuilder &b, mlir::Location loc,
                                                mlir::Value whole, DistType type);

} // namespace flow
