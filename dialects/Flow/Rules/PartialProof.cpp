// Which partial values pass a linalg body: an abstract interpretation of the
// scalars, jointly over all operands that are partial, destinations among them.
#include "dialects/Flow/Rules/Monoids.h"
#include "dialects/Flow/Rules/Rules.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flow;

namespace {

/// Sum:     Zero < Constant, Linear < Top.
/// Max/min: Constant < Up, Down < Top. Up commutes with the combination and is a
///          maximum of parts, Down is a minimum of parts.
enum class Scalar { Zero, Constant, Linear, Up, Down, Top };

struct BodyProof {
  bool sum;
  const AxisInfo &info;
  DenseMap<Value, Scalar> scalars;

  static Scalar join(Scalar a, Scalar b) {
    if (a == b)
      return a;
    if (a == Scalar::Top || b == Scalar::Top)
      return Scalar::Top;
    if (a == Scalar::Zero)
      return b;
    if (b == Scalar::Zero)
      return a;
    // A value that all ranks hold is its own maximum and minimum.
    if (a == Scalar::Constant && b != Scalar::Linear)
      return b;
    if (b == Scalar::Constant && a != Scalar::Linear)
      return a;
    return Scalar::Top;
  }
  static Scalar flip(Scalar a) {
    return a == Scalar::Up ? Scalar::Down : a == Scalar::Down ? Scalar::Up : a;
  }
  static bool isConstant(Scalar a) { return a == Scalar::Constant || a == Scalar::Zero; }

  static bool isZero(Value v) {
    return matchPattern(v, m_AnyZeroFloat()) || matchPattern(v, m_Zero());
  }
  Scalar get(Value v) const {
    if (auto it = scalars.find(v); it != scalars.end())
      return it->second;
    return sum && isZero(v) ? Scalar::Zero : Scalar::Constant;
  }

  /// Joins of branches under sum need both sides linear: `c ? x : 1` is affine.
  Scalar select(arith::SelectOp op) const {
    Scalar a = get(op.getTrueValue()), b = get(op.getFalseValue());
    if (isConstant(get(op.getCondition())))
      return join(a, b);
    // Importers write relu and clamp as a compare and a select of its operands.
    auto compare = op.getCondition().getDefiningOp<arith::CmpFOp>();
    if (sum || !compare)
      return Scalar::Top;
    bool swapped = compare.getLhs() == op.getFalseValue() && compare.getRhs() == op.getTrueValue();
    if (!swapped &&
        (compare.getLhs() != op.getTrueValue() || compare.getRhs() != op.getFalseValue()))
      return Scalar::Top;
    using P = arith::CmpFPredicate;
    P p = compare.getPredicate();
    bool greater = p == P::OGT || p == P::OGE || p == P::UGT || p == P::UGE;
    bool less = p == P::OLT || p == P::OLE || p == P::ULT || p == P::ULE;
    if (!greater && !less)
      return Scalar::Top;
    return extremum(a, b, greater != swapped);
  }
  static Scalar extremum(Scalar a, Scalar b, bool isMax) {
    if (a == Scalar::Constant)
      return b;
    if (b == Scalar::Constant)
      return a;
    Scalar own = isMax ? Scalar::Up : Scalar::Down;
    return a == own && b == own ? own : Scalar::Top;
  }
  /// The table that a body reads: what its elements are.
  Scalar extract(tensor::ExtractOp op) const {
    for (Value index : op.getIndices())
      if (!isConstant(get(index)))
        return Scalar::Top;
    AxisState table = info.get(op.getTensor());
    if (table.kind != AxisState::Held || table.sbp.isBroadcast())
      return Scalar::Constant;
    return fromSbp(table.sbp);
  }
  Scalar fromSbp(SbpAttr sbp) const {
    if (!sbp.isPartial() || sbp.getMonoid() == Monoid::Prod)
      return sbp.isBroadcast() ? Scalar::Constant : Scalar::Top;
    if (sum != (sbp.getMonoid() == Monoid::Sum))
      return Scalar::Top;
    return sum ? Scalar::Linear : sbp.getMonoid() == Monoid::Max ? Scalar::Up : Scalar::Down;
  }

  Scalar evaluateSum(Operation *op, ArrayRef<Scalar> a) const {
    auto multiply = [](Scalar x, Scalar y) {
      if (x == Scalar::Top || y == Scalar::Top)
        return Scalar::Top;
      if (x == Scalar::Zero || y == Scalar::Zero)
        return Scalar::Zero;
      return x == Scalar::Constant ? y : y == Scalar::Constant ? x : Scalar::Top;
    };
    return TypeSwitch<Operation *, Scalar>(op)
        .Case<arith::AddFOp, arith::SubFOp, arith::AddIOp, arith::SubIOp>(
            [&](auto) { return join(a[0], a[1]); })
        // A narrowing of floats rounds each part: not linear.
        .Case<arith::NegFOp, arith::ExtFOp, arith::TruncIOp>([&](auto) { return a[0]; })
        .Case<arith::MulFOp, arith::MulIOp>([&](auto) { return multiply(a[0], a[1]); })
        .Case<math::FmaOp>([&](auto) { return join(multiply(a[0], a[1]), a[2]); })
        .Case<arith::DivFOp>([&](auto) { return a[1] == Scalar::Constant ? a[0] : Scalar::Top; })
        .Case<arith::SelectOp>([&](arith::SelectOp s) { return select(s); })
        .Case<tensor::ExtractOp>([&](tensor::ExtractOp e) { return extract(e); })
        .Default([&](Operation *o) {
          return llvm::all_of(a, isConstant) ? Scalar::Constant : Scalar::Top;
        });
  }

  /// The sign of a factor: +1, -1, or 0 if unknown.
  static int signOf(Value v) {
    APFloat f(0.0);
    if (matchPattern(v, m_ConstantFloat(&f)))
      return f.isZero() || f.isNaN() ? 0 : f.isNegative() ? -1 : 1;
    return isa_and_nonnull<math::ExpOp>(v.getDefiningOp()) ? 1 : 0;
  }
  static Scalar scale(Scalar a, Value by) {
    if (a == Scalar::Constant)
      return a;
    int sign = signOf(by);
    return sign > 0 ? a : sign < 0 ? flip(a) : Scalar::Top;
  }
  Scalar evaluateExtremum(Operation *op, ArrayRef<Scalar> a) const {
    auto oneOf = [&](Scalar x, Scalar y) {
      return x == Scalar::Constant ? y : y == Scalar::Constant ? x : Scalar::Top;
    };
    return TypeSwitch<Operation *, Scalar>(op)
        .Case<arith::MaximumFOp, arith::MaxNumFOp, arith::MaxSIOp>(
            [&](auto) { return extremum(a[0], a[1], true); })
        .Case<arith::MinimumFOp, arith::MinNumFOp, arith::MinSIOp>(
            [&](auto) { return extremum(a[0], a[1], false); })
        .Case<arith::AddFOp>([&](auto) { return oneOf(a[0], a[1]); })
        .Case<arith::SubFOp>([&](auto) { return oneOf(a[0], flip(a[1])); })
        .Case<arith::NegFOp>([&](auto) { return flip(a[0]); })
        .Case<arith::MulFOp>([&](arith::MulFOp m) {
          return a[1] == Scalar::Constant   ? scale(a[0], m.getRhs())
                 : a[0] == Scalar::Constant ? scale(a[1], m.getLhs())
                                            : Scalar::Top;
        })
        .Case<arith::DivFOp>([&](arith::DivFOp d) {
          return a[1] == Scalar::Constant ? scale(a[0], d.getRhs()) : Scalar::Top;
        })
        .Case<math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log2Op, math::Log1pOp,
              math::SqrtOp, math::TanhOp, math::ErfOp, math::AtanOp, math::FloorOp, math::CeilOp,
              math::RoundEvenOp, arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::SIToFPOp>(
            [&](auto) { return a[0]; })
        .Case<arith::SelectOp>([&](arith::SelectOp s) { return select(s); })
        .Case<tensor::ExtractOp>([&](tensor::ExtractOp e) { return extract(e); })
        .Default([&](Operation *o) {
          return llvm::all_of(a, isConstant) ? Scalar::Constant : Scalar::Top;
        });
  }

  void evaluateBody(Block &body) {
    for (Operation &op : body.without_terminator()) {
      Scalar value = Scalar::Top;
      if (op.getNumRegions() == 0) {
        SmallVector<Scalar> a =
            llvm::map_to_vector(op.getOperands(), [&](Value v) { return get(v); });
        value = sum ? evaluateSum(&op, a) : evaluateExtremum(&op, a);
      }
      for (Value result : op.getResults())
        scalars[result] = sum && isZero(result) ? Scalar::Zero : value;
    }
  }
};

} // namespace

/// All partial states that reach the op, or none if they cannot pass together.
static std::optional<bool> partialIsSum(linalg::LinalgOp op, AxisInfo &info) {
  std::optional<bool> isSum;
  SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  for (Value v : values) {
    AxisState s = info.get(v);
    if (s.kind != AxisState::Held || !s.sbp.isPartial())
      continue;
    bool sum = s.sbp.getMonoid() == Monoid::Sum;
    if (s.sbp.getMonoid() == Monoid::Prod || (isSum && *isSum != sum))
      return std::nullopt;
    isSum = sum;
  }
  return isSum;
}

LogicalResult flow::provePartial(linalg::LinalgOp op, AxisInfo &info) {
  std::optional<bool> sum = partialIsSum(op, info);
  if (!sum)
    return refuse(info, op, "partial values of different monoids do not pass together");
  BodyProof proof{*sum, info, DenseMap<Value, Scalar>()};
  for (OpOperand &operand : op->getOpOperands()) {
    AxisState s = info.get(operand.get());
    Scalar value = Scalar::Constant;
    if (s.kind == AxisState::Held)
      value = proof.fromSbp(s.sbp);
    else if (*sum && (s.kind == AxisState::Undefined || isNeutral(s.element, Monoid::Sum)))
      value = Scalar::Zero;
    proof.scalars[op.getMatchingBlockArgument(&operand)] = value;
  }
  // The accumulator is a fixed point over the iterations of the reduction.
  Block *body = op.getBlock();
  auto yields = body->getTerminator()->getOperands();
  for (bool changed = true; changed;) {
    changed = false;
    proof.evaluateBody(*body);
    if (op.getNumReductionLoops() == 0)
      break;
    for (auto [accumulator, yield] : llvm::zip(op.getRegionOutputArgs(), yields)) {
      Scalar before = proof.get(accumulator), after = BodyProof::join(before, proof.get(yield));
      changed |= before != after;
      proof.scalars[accumulator] = after;
    }
  }
  MLIRContext *context = op->getContext();
  for (auto [result, accumulator, yield] :
       llvm::zip(op->getResults(), op.getRegionOutputArgs(), yields)) {
    SbpAttr sbp = SbpAttr::broadcast(context);
    switch (proof.get(op.getNumReductionLoops() ? Value(accumulator) : yield)) {
    case Scalar::Top:
      return refuse(info, op,
                    *sum ? "the body is not linear in its partial operands"
                         : "the body is not monotone in its partial operands");
    case Scalar::Linear:
      sbp = SbpAttr::partial(context, Monoid::Sum);
      break;
    case Scalar::Up:
      sbp = SbpAttr::partial(context, Monoid::Max);
      break;
    case Scalar::Down:
      sbp = SbpAttr::partial(context, Monoid::Min);
      break;
    case Scalar::Zero:
    case Scalar::Constant:
      break;
    }
    info.states[result] = {AxisState::Held, {}, sbp};
  }
  return success();
}
