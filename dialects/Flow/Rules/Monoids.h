// Monoids of partial values: neutral elements, and the combiner of a linalg body.
#pragma once

#include "dialects/Flow/IR/FlowAttrs.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace flow {

/// The neutral element of `monoid` for a float or integer type.
mlir::TypedAttr neutralElement(Monoid monoid, mlir::Type type);

/// True if a rank may contribute `element` any number of times without changing
/// the combination. For max and min that is every element which all ranks hold.
bool isNeutral(mlir::Attribute element, Monoid monoid);

/// True if combining a value with itself gives the value: max and min.
inline bool isIdempotent(Monoid monoid) {
  return monoid == Monoid::Max || monoid == Monoid::Min;
}

/// The monoid by which the body folds into output number `output`, if it is
/// exactly one operation of the white list.
std::optional<Monoid> combinerOf(mlir::linalg::LinalgOp op, unsigned output);

} // namespace flow
