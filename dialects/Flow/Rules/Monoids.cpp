// Monoids of partial values: neutral elements, and the combiner of a linalg body.
#include "dialects/Flow/Rules/Monoids.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flow;

TypedAttr flow::neutralElement(Monoid monoid, Type type) {
  Builder b(type.getContext());
  if (auto f = dyn_cast<FloatType>(type)) {
    switch (monoid) {
    case Monoid::Sum:
      return b.getFloatAttr(type, 0.0);
    case Monoid::Prod:
      return b.getFloatAttr(type, 1.0);
    case Monoid::Max:
    case Monoid::Min:
      return b.getFloatAttr(type, APFloat::getInf(f.getFloatSemantics(), monoid == Monoid::Max));
    }
  }
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  switch (monoid) {
  case Monoid::Sum:
    return b.getIntegerAttr(type, 0);
  case Monoid::Prod:
    return b.getIntegerAttr(type, 1);
  case Monoid::Max:
    return b.getIntegerAttr(type, APInt::getSignedMinValue(width));
  case Monoid::Min:
    return b.getIntegerAttr(type, APInt::getSignedMaxValue(width));
  }
  llvm_unreachable("every monoid is handled");
}

bool flow::isNeutral(Attribute element, Monoid monoid) {
  if (isIdempotent(monoid))
    return true;
  auto typed = dyn_cast_or_null<TypedAttr>(element);
  if (!typed)
    return false;
  if (auto f = dyn_cast<FloatAttr>(typed))
    return monoid == Monoid::Sum ? f.getValue().isZero() : f.getValue().isExactlyValue(1.0);
  return typed == neutralElement(monoid, typed.getType());
}

std::optional<Monoid> flow::combinerOf(linalg::LinalgOp op, unsigned output) {
  SmallVector<Operation *, 4> combiners;
  if (!matchReduction(op.getRegionOutputArgs(), output, combiners) || combiners.size() != 1)
    return std::nullopt;
  using Result = std::optional<Monoid>;
  return TypeSwitch<Operation *, Result>(combiners.front())
      .Case<arith::AddFOp, arith::AddIOp>([](auto) { return Monoid::Sum; })
      .Case<arith::MulFOp, arith::MulIOp>([](auto) { return Monoid::Prod; })
      .Case<arith::MaximumFOp, arith::MaxNumFOp, arith::MaxSIOp>([](auto) { return Monoid::Max; })
      .Case<arith::MinimumFOp, arith::MinNumFOp, arith::MinSIOp>([](auto) { return Monoid::Min; })
      .Default([](Operation *) -> Result { return std::nullopt; });
}
