// One rule per scalar op: what a cotangent of the result adds to those of the operands.
#include "lib/Training/Gradients/ScalarAdjoint.h"
#include "lib/Training/GenericBuilders.h"
#include "lib/Training/Gradients/Reverse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using arith::CmpFPredicate;

namespace flow::training {
namespace {

// Short-hand to write formulas; folds constants, so that no 1*x or x+0 is left.
struct Formula {
  OpBuilder &b;
  Location loc;
  Type type;

  Value c(double d) const { return scalarConstant(b, loc, type, d); }
  Value add(Value x, Value y) const { return b.createOrFold<arith::AddFOp>(loc, x, y); }
  Value sub(Value x, Value y) const { return b.createOrFold<arith::SubFOp>(loc, x, y); }
  Value mul(Value x, Value y) const { return b.createOrFold<arith::MulFOp>(loc, x, y); }
  Value div(Value x, Value y) const { return b.createOrFold<arith::DivFOp>(loc, x, y); }
  Value neg(Value x) const { return b.createOrFold<arith::NegFOp>(loc, x); }
  Value select(Value p, Value x, Value y) const {
    return b.createOrFold<arith::SelectOp>(loc, p, x, y);
  }
  Value compare(CmpFPredicate p, Value x, Value y) const {
    return arith::CmpFOp::create(b, loc, p, x, y);
  }
  template <typename OpT> Value apply(Value x) const { return OpT::create(b, loc, x); }
  Value square(Value x) const { return mul(x, x); }
};

// d result / d operand of the functions of one operand. Null: no rule here.
Value derivative(Operation *op, const Formula &e) {
  Value x = op->getOperand(0), r = op->getResult(0), one = e.c(1);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp) { return r; })
      .Case([&](math::ExpM1Op) { return e.add(r, one); })
      .Case([&](math::Exp2Op) { return e.mul(r, e.c(std::log(2.0))); })
      .Case([&](math::Log1pOp) { return e.div(one, e.add(one, x)); })
      .Case([&](math::Log2Op) { return e.div(e.c(1 / std::log(2.0)), x); })
      .Case([&](math::Log10Op) { return e.div(e.c(1 / std::log(10.0)), x); })
      .Case([&](math::TanhOp) { return e.sub(one, e.square(r)); })
      .Case([&](math::SinhOp) { return e.apply<math::CoshOp>(x); })
      .Case([&](math::CoshOp) { return e.apply<math::SinhOp>(x); })
      .Case([&](math::SinOp) { return e.apply<math::CosOp>(x); })
      .Case([&](math::CosOp) { return e.neg(e.apply<math::SinOp>(x)); })
      .Case([&](math::TanOp) { return e.add(one, e.square(r)); })
      .Case([&](math::AsinOp) { return e.apply<math::RsqrtOp>(e.sub(one, e.square(x))); })
      .Case([&](math::AcosOp) { return e.neg(e.apply<math::RsqrtOp>(e.sub(one, e.square(x)))); })
      .Case([&](math::AtanOp) { return e.div(one, e.add(one, e.square(x))); })
      .Case([&](math::AsinhOp) { return e.apply<math::RsqrtOp>(e.add(e.square(x), one)); })
      .Case([&](math::AcoshOp) { return e.apply<math::RsqrtOp>(e.sub(e.square(x), one)); })
      .Case([&](math::AtanhOp) { return e.div(one, e.sub(one, e.square(x))); })
      .Case([&](math::ErfOp) {
        return e.mul(e.c(2 / std::sqrt(llvm::numbers::pi)),
                     e.apply<math::ExpOp>(e.neg(e.square(x))));
      })
      .Case([&](math::ErfcOp) {
        return e.mul(e.c(-2 / std::sqrt(llvm::numbers::pi)),
                     e.apply<math::ExpOp>(e.neg(e.square(x))));
      })
      .Case([&](math::CbrtOp) { return e.div(e.c(1.0 / 3), e.square(r)); })
      .Case([&](math::RsqrtOp) { return e.mul(e.c(-0.5), e.mul(r, e.square(r))); })
      .Default([](Operation *) { return Value(); });
}

// max/min: the operand that won gets the gradient, equal operands half each (as torch.maximum).
void reverseExtremum(const Formula &e, CmpFPredicate wins, Operation *op, Value g,
                     llvm::function_ref<void(Value, Value)> add) {
  Value x = op->getOperand(0), y = op->getOperand(1), zero = e.c(0);
  Value tie = e.compare(CmpFPredicate::OEQ, x, y), half = e.mul(g, e.c(0.5));
  add(x, e.select(tie, half, e.select(e.compare(wins, x, y), g, zero)));
  add(y, e.select(tie, half, e.select(e.compare(wins, y, x), g, zero)));
}

void reversePower(const Formula &e, Operation *op, Value g,
                  llvm::function_ref<void(Value, Value)> add) {
  Value x = op->getOperand(0), p = op->getOperand(1), r = op->getResult(0);
  FloatAttr constant;
  if (matchPattern(p, m_Constant(&constant))) { // no log: negative bases stay legal
    double d = constant.getValueAsDouble();
    if (d == 0)
      return;
    Value less = d == 2   ? x
                 : d == 1 ? e.c(1)
                          : math::PowFOp::create(e.b, e.loc, x, e.c(d - 1)).getResult();
    return add(x, e.mul(g, e.mul(e.c(d), less)));
  }
  Value zero = e.c(0), less = math::PowFOp::create(e.b, e.loc, x, e.sub(p, e.c(1)));
  add(x, e.mul(g, e.mul(p, less)));
  // 0^p does not depend on p
  Value viaLog = e.mul(g, e.mul(r, e.apply<math::LogOp>(x)));
  add(p, e.select(e.compare(CmpFPredicate::OEQ, x, zero), zero, viaLog));
}

// x - y * trunc(x / y)
void reverseRemainder(const Formula &e, Operation *op, Value g,
                      llvm::function_ref<void(Value, Value)> add) {
  Value x = op->getOperand(0), y = op->getOperand(1);
  add(x, g);
  add(y, e.neg(e.mul(g, e.apply<math::TruncOp>(e.div(x, y)))));
}

} // namespace

void addScalarAdjoint(OpBuilder &b, ScalarAdjoints &adjoints, Value v, Value g) {
  if (!isa<FloatType>(v.getType()))
    return;
  Value &slot = adjoints[v];
  slot = slot ? b.createOrFold<arith::AddFOp>(v.getLoc(), slot, g) : g;
}

LogicalResult reverseScalarOp(OpBuilder &b, Operation *op, ScalarAdjoints &adjoints) {
  if (op->getNumResults() != 1)
    return noGradient(op) << "an op with " << op->getNumResults() << " results";
  Value g = adjoints.lookup(op->getResult(0)), r = op->getResult(0);
  if (!g)
    return success();
  Formula e{b, op->getLoc(), r.getType()};
  auto x = [&](int i) { return op->getOperand(i); };
  auto add = [&](Value v, Value d) { addScalarAdjoint(b, adjoints, v, d); };
  if (op->getNumOperands() == 1 && op->getOperand(0).getType() == r.getType())
    if (Value d = derivative(op, e)) {
      add(x(0), e.mul(g, d));
      return success();
    }
  bool known = true;
  llvm::TypeSwitch<Operation *>(op)
      .Case<arith::ConstantOp, arith::SIToFPOp, arith::UIToFPOp, math::FloorOp, math::CeilOp,
            math::RoundOp, math::RoundEvenOp, math::TruncOp>([](Operation *) {})
      .Case([&](arith::AddFOp) { add(x(0), g), add(x(1), g); })
      .Case([&](arith::SubFOp) { add(x(0), g), add(x(1), e.neg(g)); })
      .Case([&](arith::MulFOp) {
        add(x(0), e.mul(g, x(1)));
        add(x(1), e.mul(g, x(0)));
      })
      .Case([&](arith::DivFOp) {
        Value q = e.div(g, x(1));
        add(x(0), q);
        add(x(1), e.neg(e.mul(q, r)));
      })
      .Case([&](math::FmaOp) {
        add(x(0), e.mul(g, x(1)));
        add(x(1), e.mul(g, x(0)));
        add(x(2), g);
      })
      .Case([&](math::LogOp) { add(x(0), e.div(g, x(0))); })
      .Case([&](math::SqrtOp) { add(x(0), e.div(e.mul(g, e.c(0.5)), r)); })
      .Case([&](arith::NegFOp) { add(x(0), e.neg(g)); })
      .Case([&](math::AbsFOp) { // 0 at 0, as torch
        Value z = e.c(0);
        Value negative = e.select(e.compare(CmpFPredicate::OLT, x(0), z), e.neg(g), z);
        add(x(0), e.select(e.compare(CmpFPredicate::OGT, x(0), z), g, negative));
      })
      .Case([&](math::CopySignOp) { // |x| with the sign of y: flips where the signs differ
        Value same = e.compare(CmpFPredicate::OEQ, x(0), r);
        add(x(0), e.select(same, g, e.neg(g)));
      })
      .Case([&](math::Atan2Op) {
        Value n = e.div(g, e.add(e.square(x(0)), e.square(x(1))));
        add(x(0), e.mul(n, x(1)));
        add(x(1), e.neg(e.mul(n, x(0))));
      })
      .Case([&](math::PowFOp) { reversePower(e, op, g, add); })
      .Case([&](math::FPowIOp p) {
        Value n = arith::SIToFPOp::create(b, e.loc, e.type, x(1));
        Value one = scalarConstant(b, e.loc, x(1).getType(), 1);
        Value less = b.createOrFold<arith::SubIOp>(e.loc, x(1), one);
        add(x(0), e.mul(g, e.mul(n, math::FPowIOp::create(b, e.loc, x(0), less))));
      })
      .Case([&](arith::RemFOp) { reverseRemainder(e, op, g, add); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>(
          [&](Operation *) { reverseExtremum(e, CmpFPredicate::OGT, op, g, add); })
      .Case<arith::MinimumFOp, arith::MinNumFOp>(
          [&](Operation *) { reverseExtremum(e, CmpFPredicate::OLT, op, g, add); })
      .Case([&](arith::SelectOp) {
        add(x(1), e.select(x(0), g, e.c(0)));
        add(x(2), e.select(x(0), e.c(0), g));
      })
      .Case<arith::ExtFOp, arith::TruncFOp>(
          [&](Operation *) { add(x(0), convertFloat(b, e.loc, g, x(0).getType())); })
      .Default([&](Operation *) { known = false; });
  return known ? success() : LogicalResult(noGradient(op) << "the scalar op " << op->getName());
}

// What flows out of a branch of a select is masked once more where it arrives: else
// where(x > 0, sqrt(x), 0) has the gradient 0 * inf = NaN at x = 0.
static LogicalResult reverseSelect(OpBuilder &b, arith::SelectOp select,
                                   ArrayRef<Operation *> before, Value g,
                                   ScalarAdjoints &adjoints) {
  Location loc = select.getLoc();
  SmallVector<Value> leaves(select->getBlock()->getArguments());
  for (Operation *op : before) // reads of gathered tensors are leaves, too
    if (isa<tensor::ExtractOp>(op))
      leaves.push_back(op->getResult(0));
  for (bool taken : {true, false}) {
    Value branch = taken ? select.getTrueValue() : select.getFalseValue();
    ScalarAdjoints own;
    own[branch] = g;
    if (failed(reverseScalarOps(b, before, own)))
      return failure();
    for (Value leaf : leaves) {
      Value d = own.lookup(leaf);
      if (!d)
        continue;
      Value zero = scalarConstant(b, loc, d.getType(), 0);
      addScalarAdjoint(b, adjoints, leaf,
                       arith::SelectOp::create(b, loc, select.getCondition(), taken ? d : zero,
                                               taken ? zero : d));
    }
  }
  return success();
}

LogicalResult reverseScalarOps(OpBuilder &b, ArrayRef<Operation *> ops, ScalarAdjoints &adjoints) {
  for (; !ops.empty(); ops = ops.drop_back()) {
    Operation *op = ops.back();
    if (isa<linalg::IndexOp, tensor::ExtractOp>(op) ||
        llvm::none_of(op->getResults(), [](Value v) { return isa<FloatType>(v.getType()); }))
      continue;
    Value g = adjoints.lookup(op->getResult(0));
    auto select = dyn_cast<arith::SelectOp>(op);
    if (select && g) {
      if (failed(reverseSelect(b, select, ops.drop_back(), g, adjoints)))
        return failure();
    } else if (failed(reverseScalarOp(b, op, adjoints))) {
      return failure();
    }
  }
  return success();
}

} // namespace flow::training
