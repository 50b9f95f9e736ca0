// How a linalg op's loops walk over an operand's dims.
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace flow {

/// What splitting a loop does to an operand.
struct SplitOfOperand {
  enum Kind {
    Whole,   // the loop does not index the operand: every rank reads all of it
    Split,   // consecutive runs of the loop read consecutive runs of `dim`
    Tangled, // neighbouring iterations share elements, or the loop occurs twice
  } kind;
  unsigned dim = 0;
  int64_t stride = 1; // elements of `dim` per iteration
};
SplitOfOperand splitOfOperand(mlir::linalg::LinalgOp op, mlir::OpOperand &operand, unsigned loop);

/// The loop whose split splits `dim` of the operand, and the elements of `dim`
/// per iteration; none if no loop does.
std::optional<std::pair<unsigned, int64_t>> loopOfDim(mlir::linalg::LinalgOp op,
                                                      mlir::OpOperand &operand, unsigned dim);

/// For each dim of the wide side of a reshape group, the outermost one that is
/// not 1 (or the first) and the product of those inside it.
std::pair<int64_t, int64_t> leadOfGroup(llvm::ArrayRef<int64_t> shape,
                                        llvm::ArrayRef<int64_t> group);

} // namespace flow
