// Scalar expressions that the rules' bodies are made of.
#include "lib/Legalize/ONNX/ScalarMath.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace flow::onnx_rules;

Value flow::onnx_rules::scalar(ImplicitLocOpBuilder &b, Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  return arith::ConstantOp::create(
      b, b.getIntegerAttr(
             type, APInt(64, static_cast<int64_t>(value)).trunc(type.getIntOrFloatBitWidth())));
}

Value flow::onnx_rules::compare(ImplicitLocOpBuilder &b, arith::CmpFPredicate forFloats,
                                arith::CmpIPredicate forIntegers, Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return arith::CmpFOp::create(b, forFloats, x, y);
  return arith::CmpIOp::create(b, forIntegers, x, y);
}

Value flow::onnx_rules::select(ImplicitLocOpBuilder &b, Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, condition, x, y);
}

Value flow::onnx_rules::sigmoid(ImplicitLocOpBuilder &b, Value x) {
  Value one = scalar(b, x.getType(), 1);
  Value e = math::ExpOp::create(b, arith::NegFOp::create(b, x));
  return arith::DivFOp::create(b, one, arith::AddFOp::create(b, one, e));
}

Value flow::onnx_rules::softplus(ImplicitLocOpBuilder &b, Value x) {
  Value zero = scalar(b, x.getType(), 0);
  Value positive = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, zero);
  Value magnitude = select(b, positive, x, arith::NegFOp::create(b, x));
  Value rest =
      math::Log1pOp::create(b, math::ExpOp::create(b, arith::NegFOp::create(b, magnitude)));
  return arith::AddFOp::create(b, select(b, positive, x, zero), rest);
}

Value flow::onnx_rules::divideIntegers(ImplicitLocOpBuilder &b, Value x, Value y, bool isUnsigned) {
  Type type = x.getType();
  Value zero = scalar(b, type, 0), one = scalar(b, type, 1);
  Value byZero = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, y, zero);
  if (isUnsigned) {
    Value quotient = arith::DivUIOp::create(b, x, select(b, byZero, one, y));
    return select(b, byZero, zero, quotient);
  }
  Value byMinusOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, y, scalar(b, type, -1));
  Value safe = select(b, arith::OrIOp::create(b, byZero, byMinusOne), one, y);
  Value quotient = arith::DivSIOp::create(b, x, safe);
  quotient = select(b, byMinusOne, arith::SubIOp::create(b, zero, x), quotient);
  return select(b, byZero, zero, quotient);
}

Value flow::onnx_rules::moduloIntegers(ImplicitLocOpBuilder &b, Value x, Value y, bool floor,
                                       bool isUnsigned) {
  Type type = x.getType();
  Value zero = scalar(b, type, 0), one = scalar(b, type, 1);
  Value byZero = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, y, zero);
  if (isUnsigned)
    return select(b, byZero, zero, arith::RemUIOp::create(b, x, select(b, byZero, one, y)));
  // x mod -1 is 0, as x mod 1 is.
  Value byMinusOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, y, scalar(b, type, -1));
  Value safe = select(b, arith::OrIOp::create(b, byZero, byMinusOne), one, y);
  Value rest = arith::RemSIOp::create(b, x, safe);
  if (!floor)
    return rest;
  Value nonZero = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, rest, zero);
  Value signsDiffer = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                            arith::XOrIOp::create(b, rest, safe), zero);
  return select(b, arith::AndIOp::create(b, nonZero, signsDiffer),
                arith::AddIOp::create(b, rest, safe), rest);
}

Value flow::onnx_rules::castScalar(ImplicitLocOpBuilder &b, Value x, Type to, bool fromUnsigned,
                                   bool toUnsigned) {
  Type from = x.getType();
  bool fromBool = from.isInteger(1), toBool = to.isInteger(1);
  if (from == to)
    return x;
  if (toBool)
    return compare(b, arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne, x, scalar(b, from, 0));
  auto fromFloat = dyn_cast<FloatType>(from), toFloat = dyn_cast<FloatType>(to);
  if (fromFloat && toFloat) {
    if (fromFloat.getWidth() < toFloat.getWidth())
      return arith::ExtFOp::create(b, to, x);
    if (fromFloat.getWidth() > toFloat.getWidth())
      return arith::TruncFOp::create(b, to, x);
    return arith::TruncFOp::create(b, to, arith::ExtFOp::create(b, b.getF32Type(), x));
  }
  if (fromFloat) {
    // Through 64 bits: a value that the target can't hold wraps as in C++ libraries instead
    // of being undefined.
    Value wide = toUnsigned && to.getIntOrFloatBitWidth() == 64
                     ? Value(arith::FPToUIOp::create(b, b.getI64Type(), x))
                     : Value(arith::FPToSIOp::create(b, b.getI64Type(), x));
    return to.isInteger(64) ? wide : Value(arith::TruncIOp::create(b, to, wide));
  }
  if (toFloat)
    return fromUnsigned || fromBool ? Value(arith::UIToFPOp::create(b, to, x))
                                    : Value(arith::SIToFPOp::create(b, to, x));
  unsigned fromWidth = from.getIntOrFloatBitWidth(), toWidth = to.getIntOrFloatBitWidth();
  if (fromWidth > toWidth)
    return arith::TruncIOp::create(b, to, x);
  return fromUnsigned || fromBool ? Value(arith::ExtUIOp::create(b, to, x))
                                  : Value(arith::ExtSIOp::create(b, to, x));
}
