// Activations: Relu, Sigmoid, Gelu, ... What has a kink is a select on a compare, so that
// its gradient at the kink is decided by the compare.
#include "lib/Legalize/ONNX/ElementwiseRule.h"
#include "lib/Legalize/ONNX/ScalarMath.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

static Value isPositive(B &b, Value x) {
  // Unordered, so that a NaN stays one.
  return compare(b, arith::CmpFPredicate::UGT, arith::CmpIPredicate::sgt, x,
                 scalar(b, x.getType(), 0));
}

static Value isNegative(B &b, Value x) {
  return compare(b, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, x,
                 scalar(b, x.getType(), 0));
}

static Value times(B &b, Value x, double factor) {
  return arith::MulFOp::create(b, x, scalar(b, x.getType(), factor));
}

static Value plus(B &b, Value x, double term) {
  return arith::AddFOp::create(b, x, scalar(b, x.getType(), term));
}

/// x clamped to [low, high] by selects.
static Value clamp(B &b, Value x, double low, double high) {
  Value l = scalar(b, x.getType(), low), h = scalar(b, x.getType(), high);
  x = select(b, arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, l), l, x);
  return select(b, arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, h, x), h, x);
}

static Value lowerElu(B &b, Node &node, ValueRange x) {
  Value below = times(b, math::ExpM1Op::create(b, x[0]), node.real("alpha", 1.0));
  return select(b, isNegative(b, x[0]), below, x[0]);
}

static Value lowerCelu(B &b, Node &node, ValueRange x) {
  double alpha = node.real("alpha", 1.0);
  Value scaled = arith::DivFOp::create(b, x[0], scalar(b, x[0].getType(), alpha));
  return select(b, isNegative(b, x[0]), times(b, math::ExpM1Op::create(b, scaled), alpha), x[0]);
}

static Value lowerSelu(B &b, Node &node, ValueRange x) {
  double alpha = node.real("alpha", 1.67326319217681884765625),
         gamma = node.real("gamma", 1.05070102214813232421875);
  Value below = times(b, math::ExpM1Op::create(b, x[0]), alpha);
  return times(b, select(b, isPositive(b, x[0]), x[0], below), gamma);
}

static Value lowerGelu(B &b, Node &node, ValueRange x) {
  Value inner;
  if (node.text("approximate", "none") == "tanh") {
    Value cube = arith::MulFOp::create(b, x[0], arith::MulFOp::create(b, x[0], x[0]));
    Value sum = arith::AddFOp::create(b, x[0], times(b, cube, 0.044715));
    inner = math::TanhOp::create(b, times(b, sum, 0.7978845608028654)); // sqrt(2 / pi)
  } else {
    inner = math::ErfOp::create(b, times(b, x[0], 0.7071067811865476)); // 1 / sqrt(2)
  }
  return arith::MulFOp::create(b, times(b, x[0], 0.5), plus(b, inner, 1.0));
}

static Value lowerHardSigmoid(B &b, Node &node, ValueRange x) {
  return clamp(b, plus(b, times(b, x[0], node.real("alpha", 0.2)), node.real("beta", 0.5)), 0, 1);
}

static Value lowerHardSwish(B &b, Node &, ValueRange x) {
  return arith::MulFOp::create(b, x[0], clamp(b, plus(b, times(b, x[0], 1.0 / 6), 0.5), 0, 1));
}

static Value lowerPRelu(B &b, Node &, ValueRange x) {
  Value product = isa<FloatType>(x[0].getType()) ? Value(arith::MulFOp::create(b, x[0], x[1]))
                                                 : Value(arith::MulIOp::create(b, x[0], x[1]));
  return select(b, isNegative(b, x[0]), product, x[0]);
}

void flow::onnx_rules::addActivationRules(OperatorRegistry &registry) {
  registry.add("onnx.Relu", 6,
               elementwiseRule(
                   [](B &b, Node &, ValueRange x) {
                     return select(b, isPositive(b, x[0]), x[0], scalar(b, x[0].getType(), 0));
                   },
                   {.wide = false, .floatsOnly = false}));
  registry.add("onnx.LeakyRelu", 6, elementwiseRule([](B &b, Node &node, ValueRange x) {
                 return select(b, isNegative(b, x[0]), times(b, x[0], node.real("alpha", 0.01)),
                               x[0]);
               }));
  registry.add("onnx.PRelu", 7, elementwiseRule(lowerPRelu, {.floatsOnly = false, .minInputs = 2}));
  registry.add("onnx.Elu", 6, elementwiseRule(lowerElu));
  registry.add("onnx.Celu", 12, elementwiseRule(lowerCelu));
  registry.add("onnx.Selu", 6, elementwiseRule(lowerSelu));
  registry.add("onnx.Gelu", 20, elementwiseRule(lowerGelu));
  registry.add("onnx.Sigmoid", 6,
               elementwiseRule([](B &b, Node &, ValueRange x) { return sigmoid(b, x[0]); }));
  registry.add("onnx.Tanh", 6, elementwiseRule([](B &b, Node &, ValueRange x) -> Value {
                 return math::TanhOp::create(b, x[0]);
               }));
  registry.add("onnx.Softplus", 1,
               elementwiseRule([](B &b, Node &, ValueRange x) { return softplus(b, x[0]); }));
  registry.add("onnx.Softsign", 1, elementwiseRule([](B &b, Node &, ValueRange x) -> Value {
                 return arith::DivFOp::create(b, x[0], plus(b, math::AbsFOp::create(b, x[0]), 1.0));
               }));
  registry.add("onnx.HardSigmoid", 6, elementwiseRule(lowerHardSigmoid));
  registry.add("onnx.HardSwish", 14, elementwiseRule(lowerHardSwish));
  registry.add("onnx.Swish", 24, elementwiseRule([](B &b, Node &node, ValueRange x) -> Value {
                 return arith::MulFOp::create(b, x[0],
                                              sigmoid(b, times(b, x[0], node.real("alpha", 1.0))));
               }));
  registry.add("onnx.Mish", 18, elementwiseRule([](B &b, Node &, ValueRange x) -> Value {
                 return arith::MulFOp::create(b, x[0], math::TanhOp::create(b, softplus(b, x[0])));
               }));
  registry.add("onnx.ThresholdedRelu", 10, elementwiseRule([](B &b, Node &node, ValueRange x) {
                 Value alpha = scalar(b, x[0].getType(), node.real("alpha", 1.0));
                 Value above = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x[0], alpha);
                 return select(b, above, x[0], scalar(b, x[0].getType(), 0));
               }));
  registry.add("onnx.Shrink", 9, elementwiseRule([](B &b, Node &node, ValueRange x) {
                 double lambd = node.real("lambd", 0.5), bias = node.real("bias", 0.0);
                 Type type = x[0].getType();
                 Value low = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x[0],
                                                   scalar(b, type, -lambd));
                 Value high = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x[0],
                                                    scalar(b, type, lambd));
                 Value inner = select(b, high, plus(b, x[0], -bias), scalar(b, type, 0));
                 return select(b, low, plus(b, x[0], bias), inner);
               }));
}
