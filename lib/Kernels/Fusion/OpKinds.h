// What a linalg op is for the kernel back ends, read from its maps and body.
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace flow {

/// The attribute of kernel functions.
inline constexpr llvm::StringLiteral kKernelAttr = "flow.kernel";
/// On a kernel's result: number of the argument that it may be written over.
inline constexpr llvm::StringLiteral kInplaceAttr = "flow.inplace";

/// Every loop parallel, one result, its map a permutation, the old contents of
/// the destination unused: a value that can be computed point by point.
bool isPointwise(mlir::linalg::GenericOp op);

/// The body is yield(acc + a * b) of two inputs, with only widening casts on a
/// and b. `isaContractionOpInterface` looks through any unary op instead.
bool isMulAdd(mlir::linalg::LinalgOp op);

/// A multiply-add with loops that only one input and the result span, for both
/// inputs: worth register tiles. Dot products of rows are not.
bool isTileContraction(mlir::linalg::LinalgOp op);

/// The op of the body that combines the accumulator of result 0 with the new
/// term, if the body is exactly that: yield(combine(acc, f(inputs))).
mlir::Operation *reductionCombiner(mlir::linalg::LinalgOp op);

/// All maps project loops onto dims: no windows, no constants.
bool hasOnlyProjectedMaps(mlir::linalg::LinalgOp op);

} // namespace flow
