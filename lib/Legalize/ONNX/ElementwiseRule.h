// Rules of operators that compute each element from the elements at its place.
#pragma once

#include "lib/Legalize/ONNX/BroadcastBuilder.h"
#include "lib/Legalize/ONNX/ConstantElements.h"

namespace flow::onnx_rules {

/// What a body may ask of its node: parameters and signs, read before the body runs.
using ScalarBody =
    std::function<mlir::Value(mlir::ImplicitLocOpBuilder &, Node &, mlir::ValueRange)>;

struct ElementwiseOptions {
  /// The result's element type; null for the first operand's.
  std::function<mlir::Type(Node &)> resultElement = nullptr;
  /// Whether f16 and bf16 are computed in f32. Not for what is linear: the casts would
  /// hide that a sum passes through it.
  bool wide = true;
  bool floatsOnly = true;
  std::function<Folded(Node &)> fold = nullptr;
  unsigned minInputs = 1;
  /// Operands beyond this many are no tensors of the body (bounds, exponents).
  unsigned maxInputs = ~0u;
};

/// A rule by a scalar body with NumPy's broadcasting of all operands.
OperatorRule elementwiseRule(ScalarBody body, ElementwiseOptions options = {});

/// The bool type.
mlir::Type boolElement(Node &node);

} // namespace flow::onnx_rules
