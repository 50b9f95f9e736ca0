// Reverse mode for the scalar ops of a linalg body, or of a function.
#pragma once

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace flow::training {

using ScalarAdjoints = llvm::DenseMap<mlir::Value, mlir::Value>;

/// Adds `g` to the adjoint of `v`. Floats only; others carry no gradient.
void addScalarAdjoint(mlir::OpBuilder &b, ScalarAdjoints &adjoints, mlir::Value v, mlir::Value g);

/// Given the adjoint of the result of `op`, adds to the adjoints of its operands. `op` lives where
/// `b` builds: its operands and results may be read. Fails, with an error, on an op without a rule.
mlir::LogicalResult reverseScalarOp(mlir::OpBuilder &b, mlir::Operation *op,
                                    ScalarAdjoints &adjoints);

/// The reverse sweep over `ops`, a body in order.
mlir::LogicalResult reverseScalarOps(mlir::OpBuilder &b, llvm::ArrayRef<mlir::Operation *> ops,
                                     ScalarAdjoints &adjoints);

} // namespace flow::training
