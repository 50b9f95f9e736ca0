// Reverse-mode gradients of programs in linalg, tensor, arith, math and scf on tensors.
#pragma once

#include "mlir/IR/Builders.h"

namespace flow::training {

/// An op with this unit attribute passes no gradient to its operands. Losing it never changes a
/// gradient where the true one vanishes, as that of the maximum in a log-softmax does.
inline constexpr llvm::StringLiteral kStopGradient = "flow.stop_gradient";

/// The cotangent that a value has before the reverse sweep.
struct GradientSeed {
  mlir::Value value, cotangent;
};

/// Appends the reverse sweep of the ops of `block` before its terminator and tags it
/// `flow.phase = #flow.phase<backward>`. Returns one gradient per value of `wrt`, null where no
/// differentiable path leads from it to a seed. Loops are rewritten to keep what their reverse
/// needs. Fails, with an error at the op, where there is no gradient.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> buildGradients(mlir::Block &block,
                                                               llvm::ArrayRef<GradientSeed> seeds,
                                                               llvm::ArrayRef<mlir::Value> wrt);

} // namespace flow::training
