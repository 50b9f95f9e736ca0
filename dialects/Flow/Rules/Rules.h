// Transfer functions of single ops along one mesh axis; private to this room.
#pragma once

#include "dialects/Flow/Rules/Signature.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace flow {

/// The factor that an axis splits in a section, if any, and its unit.
struct SplitFactor {
  const Factors *factors = nullptr;
  std::optional<unsigned> factor;
  int64_t numerator = 1, denominator = 1; // unit of the factor
};

llvm::LogicalResult inferLinalg(mlir::linalg::LinalgOp op, const SplitFactor &split,
                                AxisInfo &info);
/// Any op that is not a linalg op.
llvm::LogicalResult inferOther(mlir::Operation *op, const SplitFactor &split, AxisInfo &info);

/// Partial operands: states of the results if the body lets them pass.
llvm::LogicalResult provePartial(mlir::linalg::LinalgOp op, AxisInfo &info);

/// Stores why a state is refused.
llvm::LogicalResult refuse(AxisInfo &info, mlir::Operation *op, const llvm::Twine &reason);

/// Marks all results as held in one way.
void setResults(mlir::Operation *op, AxisInfo &info, SbpAttr sbp);

} // namespace flow
