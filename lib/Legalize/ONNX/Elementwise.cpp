// Arithmetic by element: Add, Div, Pow, Exp, Min, Cast, Clip, ...
#include "lib/Legalize/ONNX/ElementwiseRule.h"
#include "lib/Legalize/ONNX/ReductionBuilder.h"
#include "lib/Legalize/ONNX/ScalarMath.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <cmath>

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

static Types inferBroadcast(Node &node, const ElementwiseOptions &options) {
  SmallVector<ArrayRef<int64_t>> shapes;
  for (unsigned i = 0; i < node.numInputs() && i < options.maxInputs; ++i)
    if (node.has(i))
      shapes.push_back(node.shape(i));
  auto shape = broadcastShapes(shapes);
  if (!shape) {
    std::string text;
    for (unsigned i = 0; i < shapes.size(); ++i) {
      text += i ? " and [" : "[";
      for (auto [d, dim] : llvm::enumerate(shapes[i]))
        text += (d ? ", " : "") + std::to_string(dim);
      text += "]";
    }
    return LogicalResult(
        node.wrong("the operands' shapes " + text + " do not broadcast to each other"));
  }
  Type element = options.resultElement ? options.resultElement(node) : node.element(0);
  if (!element)
    return LogicalResult(node.unsupported("an element type is not supported"));
  return oneType(node, *shape, element);
}

OperatorRule flow::onnx_rules::elementwiseRule(ScalarBody body, ElementwiseOptions options) {
  OperatorRule rule;
  rule.minInputs = options.minInputs;
  rule.fold = options.fold;
  rule.infer = [options](Node &node) { return inferBroadcast(node, options); };
  rule.lower = [options, body](Node &node, B &b) -> Lowered {
    if (options.floatsOnly && !node.isFloat(0))
      return LogicalResult(node.unsupported("expected floating-point elements"));
    SmallVector<Value> inputs;
    for (unsigned i = 0; i < node.numInputs() && i < options.maxInputs; ++i)
      if (node.has(i))
        inputs.push_back(node.input(i));
    auto scalarBody = [&](B &ib, ValueRange scalars) { return body(ib, node, scalars); };
    Type element = node.resultType().getElementType();
    return one(options.wide ? elementwiseWide(b, inputs, element, scalarBody)
                            : elementwise(b, inputs, element, scalarBody));
  };
  return rule;
}

Type flow::onnx_rules::boolElement(Node &node) {
  return IntegerType::get(node.op.getContext(), 1);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Wraps as the machine does: overflow of signed integers is undefined in C++.
template <typename F> static std::function<int64_t(ArrayRef<int64_t>)> wrapping(F f) {
  return [f](ArrayRef<int64_t> x) {
    return static_cast<int64_t>(f(static_cast<uint64_t>(x[0]), static_cast<uint64_t>(x[1])));
  };
}

static int64_t foldDivide(ArrayRef<int64_t> x) {
  if (x[1] == 0)
    return 0;
  return x[1] == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(x[0])) : x[0] / x[1];
}

static int64_t foldModulo(ArrayRef<int64_t> x) {
  if (x[1] == 0 || x[1] == -1)
    return 0;
  int64_t rest = x[0] % x[1];
  return rest && (rest < 0) != (x[1] < 0) ? rest + x[1] : rest;
}

static void addArithmetic(OperatorRegistry &registry) {
  auto binary = [&](StringRef name, ScalarBody body, std::function<Folded(Node &)> fold,
                    bool wide) {
    registry.add(
        name, 7,
        elementwiseRule(body, {.wide = wide, .floatsOnly = false, .fold = fold, .minInputs = 2}));
  };
  binary(
      "onnx.Add", [](B &b, Node &, ValueRange x) { return combine(b, Combiner::Sum, x[0], x[1]); },
      foldElementwise(wrapping([](uint64_t x, uint64_t y) { return x + y; }),
                      [](ArrayRef<double> x) { return x[0] + x[1]; }),
      false);
  binary(
      "onnx.Sub",
      [](B &b, Node &, ValueRange x) -> Value {
        return isa<FloatType>(x[0].getType()) ? Value(arith::SubFOp::create(b, x[0], x[1]))
                                              : Value(arith::SubIOp::create(b, x[0], x[1]));
      },
      foldElementwise(wrapping([](uint64_t x, uint64_t y) { return x - y; }),
                      [](ArrayRef<double> x) { return x[0] - x[1]; }),
      false);
  binary(
      "onnx.Mul",
      [](B &b, Node &, ValueRange x) { return combine(b, Combiner::Product, x[0], x[1]); },
      foldElementwise(wrapping([](uint64_t x, uint64_t y) { return x * y; }),
                      [](ArrayRef<double> x) { return x[0] * x[1]; }),
      false);
  binary(
      "onnx.Div",
      [](B &b, Node &node, ValueRange x) -> Value {
        return isa<FloatType>(x[0].getType()) ? Value(arith::DivFOp::create(b, x[0], x[1]))
                                              : divideIntegers(b, x[0], x[1], node.isUnsigned(0));
      },
      foldElementwise(foldDivide, [](ArrayRef<double> x) { return x[0] / x[1]; }), false);
}

static Value lowerMod(B &b, Node &node, ValueRange x) {
  bool fmod = node.integer("fmod", 0) != 0;
  if (!isa<FloatType>(x[0].getType()))
    return moduloIntegers(b, x[0], x[1], /*floor=*/!fmod, node.isUnsigned(0));
  Value rest = arith::RemFOp::create(b, x[0], x[1]);
  if (fmod)
    return rest;
  Value zero = scalar(b, rest.getType(), 0);
  Value negative = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT,
                                         arith::MulFOp::create(b, rest, x[1]), zero);
  return select(b, negative, arith::AddFOp::create(b, rest, x[1]), rest);
}

//===----------------------------------------------------------------------===//
// Pow
//===----------------------------------------------------------------------===//

/// Powers of integers by squaring, over all bits of the exponent. Negative exponents give 0
/// but for a base of 1 or -1.
static Value integerPower(B &b, Value base, Value exponent) {
  Type type = base.getType();
  Value zero = scalar(b, type, 0), one = scalar(b, type, 1);
  Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, exponent, zero);
  Value isUnit = arith::CmpIOp::create(b, arith::CmpIPredicate::ule,
                                       arith::AddIOp::create(b, base, one), scalar(b, type, 2));
  Value nonZero = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, base, zero);
  isUnit = arith::AndIOp::create(b, isUnit, nonZero);
  Value low = arith::ConstantIndexOp::create(b, 0),
        high = arith::ConstantIndexOp::create(b, type.getIntOrFloatBitWidth());
  Value step = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ForOp::create(
      b, low, high, step, ValueRange{one, base, exponent},
      [&](OpBuilder &inner, Location loc, Value, ValueRange v) {
        B ib(loc, inner);
        Value bit = arith::AndIOp::create(ib, v[2], one);
        Value odd = arith::CmpIOp::create(ib, arith::CmpIPredicate::ne, bit, zero);
        Value product = select(ib, odd, arith::MulIOp::create(ib, v[0], v[1]), v[0]);
        Value square = arith::MulIOp::create(ib, v[1], v[1]);
        Value rest = arith::ShRUIOp::create(ib, v[2], one);
        scf::YieldOp::create(ib, ValueRange{product, square, rest});
      });
  Value vanishes = arith::AndIOp::create(
      b, negative, arith::XOrIOp::create(b, isUnit, scalar(b, b.getI1Type(), 1)));
  return select(b, vanishes, zero, loop.getResult(0));
}

static Value lowerPowScalar(B &b, Node &node, ValueRange x) {
  Type base = x[0].getType();
  if (isa<IntegerType>(base) && isa<IntegerType>(x[1].getType()) && base == x[1].getType() &&
      !node.isUnsigned(0))
    return integerPower(b, x[0], x[1]);
  if (isa<FloatType>(base))
    return math::PowFOp::create(b, x[0], castScalar(b, x[1], base, node.isUnsigned(1), false));
  Value power =
      math::PowFOp::create(b, castScalar(b, x[0], b.getF64Type(), node.isUnsigned(0), false),
                           castScalar(b, x[1], b.getF64Type(), node.isUnsigned(1), false));
  return castScalar(b, power, base, false, node.isUnsigned(0));
}

static Lowered lowerPow(Node &node, B &b) {
  Type element = node.resultType().getElementType();
  auto exponent = node.isFloat(0) ? node.constantScalar(1) : std::nullopt;
  // A constant exponent is cheaper as products or a root, and keeps negative bases exact.
  bool sameShape = exponent && node.resultType().getShape() == node.shape(0);
  if (sameShape && (*exponent == 2.0 || *exponent == 3.0 || *exponent == 0.5 || *exponent == 1.0))
    return one(elementwiseWide(b, node.input(0), element, [&](B &ib, ValueRange x) -> Value {
      if (*exponent == 0.5)
        return math::SqrtOp::create(ib, x[0]);
      Value result = x[0];
      for (int i = 1; i < *exponent; ++i)
        result = arith::MulFOp::create(ib, result, x[0]);
      return result;
    }));
  return one(elementwiseWide(b, {node.input(0), node.input(1)}, element,
                             [&](B &ib, ValueRange x) { return lowerPowScalar(ib, node, x); }));
}

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

template <typename Op> static Value unaryOp(B &b, Node &, ValueRange x) {
  return Op::create(b, x[0]);
}

static Value lowerAbs(B &b, Node &node, ValueRange x) {
  if (node.isUnsigned(0))
    return x[0];
  if (isa<IntegerType>(x[0].getType()))
    return math::AbsIOp::create(b, x[0]);
  return math::AbsFOp::create(b, x[0]);
}

static Value lowerNeg(B &b, Node &, ValueRange x) {
  if (isa<IntegerType>(x[0].getType()))
    return arith::SubIOp::create(b, scalar(b, x[0].getType(), 0), x[0]);
  return arith::NegFOp::create(b, x[0]);
}

static Value lowerSign(B &b, Node &node, ValueRange x) {
  Type type = x[0].getType();
  Value zero = scalar(b, type, 0), plus = scalar(b, type, 1);
  auto greater = node.isUnsigned(0) ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
  Value positive =
      select(b, compare(b, arith::CmpFPredicate::OGT, greater, x[0], zero), plus, zero);
  if (node.isUnsigned(0))
    return positive;
  return select(b, compare(b, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, x[0], zero),
                scalar(b, type, -1), positive);
}

static void addUnary(OperatorRegistry &registry) {
  auto unary = [&](StringRef name, ScalarBody body, double (*fold)(double) = nullptr) {
    std::function<double(ArrayRef<double>)> reals;
    if (fold)
      reals = [fold](ArrayRef<double> x) { return fold(x[0]); };
    registry.add(name, 6,
                 elementwiseRule(body, {.fold = fold ? foldElementwise(nullptr, reals) : nullptr}));
  };
  unary("onnx.Exp", unaryOp<math::ExpOp>);
  unary("onnx.Log", unaryOp<math::LogOp>);
  unary("onnx.Sqrt", unaryOp<math::SqrtOp>, std::sqrt);
  unary("onnx.Erf", unaryOp<math::ErfOp>);
  unary("onnx.Floor", unaryOp<math::FloorOp>, std::floor);
  unary("onnx.Ceil", unaryOp<math::CeilOp>, std::ceil);
  unary("onnx.Round", unaryOp<math::RoundEvenOp>, std::nearbyint);
  unary("onnx.Sin", unaryOp<math::SinOp>);
  unary("onnx.Cos", unaryOp<math::CosOp>);
  unary("onnx.Tan", unaryOp<math::TanOp>);
  unary("onnx.Asin", unaryOp<math::AsinOp>);
  unary("onnx.Acos", unaryOp<math::AcosOp>);
  unary("onnx.Atan", unaryOp<math::AtanOp>);
  unary("onnx.Sinh", unaryOp<math::SinhOp>);
  unary("onnx.Cosh", unaryOp<math::CoshOp>);
  unary("onnx.Asinh", unaryOp<math::AsinhOp>);
  unary("onnx.Acosh", unaryOp<math::AcoshOp>);
  unary("onnx.Atanh", unaryOp<math::AtanhOp>);
  unary(
      "onnx.Reciprocal",
      [](B &b, Node &, ValueRange x) -> Value {
        return arith::DivFOp::create(b, scalar(b, x[0].getType(), 1), x[0]);
      },
      [](double x) { return 1 / x; });
  registry.add("onnx.Abs", 6,
               elementwiseRule(
                   lowerAbs, {.floatsOnly = false,
                              .fold = foldElementwise(
                                  [](ArrayRef<int64_t> x) {
                                    return x[0] < 0
                                               ? static_cast<int64_t>(-static_cast<uint64_t>(x[0]))
                                               : x[0];
                                  },
                                  [](ArrayRef<double> x) { return std::fabs(x[0]); })}));
  registry.add("onnx.Neg", 6,
               elementwiseRule(lowerNeg, {.wide = false,
                                          .floatsOnly = false,
                                          .fold = foldElementwise(
                                              [](ArrayRef<int64_t> x) {
                                                return static_cast<int64_t>(
                                                    -static_cast<uint64_t>(x[0]));
                                              },
                                              [](ArrayRef<double> x) { return -x[0]; })}));
  registry.add("onnx.Sign", 9, elementwiseRule(lowerSign, {.floatsOnly = false}));
}

//===----------------------------------------------------------------------===//
// Any number of operands
//===----------------------------------------------------------------------===//

static ScalarBody combineAll(Combiner combiner, bool mean = false) {
  return [=](B &b, Node &node, ValueRange x) {
    Value result = x[0];
    for (Value next : x.drop_front())
      result = combine(b, combiner, result, next, node.isUnsigned(0));
    if (mean)
      result = arith::DivFOp::create(b, result, scalar(b, result.getType(), x.size()));
    return result;
  };
}

static void addVariadic(OperatorRegistry &registry) {
  auto extremum = [](bool max) {
    return foldElementwise(
        [max](ArrayRef<int64_t> x) { return max ? *llvm::max_element(x) : *llvm::min_element(x); },
        [max](ArrayRef<double> x) { return max ? *llvm::max_element(x) : *llvm::min_element(x); });
  };
  registry.add("onnx.Max", 6,
               elementwiseRule(combineAll(Combiner::Max),
                               {.wide = false, .floatsOnly = false, .fold = extremum(true)}));
  registry.add("onnx.Min", 6,
               elementwiseRule(combineAll(Combiner::Min),
                               {.wide = false, .floatsOnly = false, .fold = extremum(false)}));
  registry.add("onnx.Sum", 6, elementwiseRule(combineAll(Combiner::Sum), {.wide = false}));
  registry.add("onnx.Mean", 6, elementwiseRule(combineAll(Combiner::Sum, /*mean=*/true)));
}

//===----------------------------------------------------------------------===//
// Clip and Cast
//===----------------------------------------------------------------------===//

/// Bounds that are constant become part of the body; others are operands.
static Lowered lowerClip(Node &node, B &b) {
  SmallVector<Value> operands{node.input(0)};
  std::optional<double> bounds[2];
  int place[2] = {-1, -1};
  for (unsigned k = 0; k < 2; ++k) {
    if (node.version() < 11) {
      if (node.parameter(k ? "max" : "min"))
        bounds[k] = node.real(k ? "max" : "min", 0);
      continue;
    }
    if (!node.has(1 + k))
      continue;
    // The double that carries an integer bound must hold it exactly.
    bounds[k] = node.constantScalar(1 + k);
    if (bounds[k] && !node.isFloat(0) && std::fabs(*bounds[k]) > 9e15)
      bounds[k] = std::nullopt;
    if (!bounds[k]) {
      place[k] = operands.size();
      operands.push_back(node.input(1 + k));
    }
  }
  auto less = node.isUnsigned(0) ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  return one(elementwise(b, operands, node.resultType().getElementType(), [&](B &ib, ValueRange x) {
    Value result = x[0];
    for (unsigned k = 0; k < 2; ++k) {
      if (!bounds[k] && place[k] < 0)
        continue;
      Value bound = bounds[k] ? scalar(ib, result.getType(), *bounds[k]) : Value(x[place[k]]);
      Value outside = k ? compare(ib, arith::CmpFPredicate::OLT, less, bound, result)
                        : compare(ib, arith::CmpFPredicate::OLT, less, result, bound);
      result = select(ib, outside, bound, result);
    }
    return result;
  }));
}

static Type typeOfOnnxElement(MLIRContext *context, int64_t dataType) {
  Builder b(context);
  switch (dataType) { // onnx.proto's TensorProto.DataType
  case 1:
    return b.getF32Type();
  case 2:
    return b.getIntegerType(8, false);
  case 3:
    return b.getI8Type();
  case 4:
    return b.getIntegerType(16, false);
  case 5:
    return b.getI16Type();
  case 6:
    return b.getI32Type();
  case 7:
    return b.getI64Type();
  case 9:
    return b.getI1Type();
  case 10:
    return b.getF16Type();
  case 11:
    return b.getF64Type();
  case 12:
    return b.getIntegerType(32, false);
  case 13:
    return b.getIntegerType(64, false);
  case 16:
    return b.getBF16Type();
  default:
    return {};
  }
}

static Type castTarget(Node &node) {
  if (node.op.getOperatorName() == "onnx.CastLike")
    return node.element(1);
  return typeOfOnnxElement(node.op.getContext(), node.integer("to", 0));
}

static Folded foldCast(Node &node) {
  auto input = foldable(node, 0);
  auto result = emptyResult(node);
  if (!input || !result)
    return {};
  bool toBool = result->element.isInteger(1);
  for (size_t i = 0; i < input->size(); ++i) {
    double real = input->real(i);
    if (result->isFloat())
      result->reals.push_back(real);
    else if (toBool)
      result->integers.push_back(real != 0);
    else if (!input->isFloat())
      result->integers.push_back(input->integers[i]);
    else if (std::fabs(real) < 9e18)
      result->integers.push_back(static_cast<int64_t>(real));
    else
      return {};
  }
  return {result->attribute()};
}

static Lowered lowerCast(Node &node, B &b) {
  Type to = node.resultType().getElementType();
  if (signlessType(node.element(0)) == to)
    return one(node.input(0));
  bool toUnsigned = castTarget(node).isUnsignedInteger();
  return one(elementwiseWide(b, node.input(0), to, [&](B &ib, ValueRange x) {
    return castScalar(ib, x[0], to, node.isUnsigned(0), toUnsigned);
  }));
}

void flow::onnx_rules::addElementwiseRules(OperatorRegistry &registry) {
  addArithmetic(registry);
  addUnary(registry);
  addVariadic(registry);
  ElementwiseOptions mod{
      .floatsOnly = false, .fold = foldElementwise(foldModulo, nullptr), .minInputs = 2};
  auto foldMod = mod.fold;
  mod.fold = [foldMod](Node &node) { return node.integer("fmod", 0) ? Folded() : foldMod(node); };
  registry.add("onnx.Mod", 10, elementwiseRule(lowerMod, mod));
  OperatorRule pow = elementwiseRule(nullptr, {.minInputs = 2});
  pow.lower = lowerPow;
  registry.add("onnx.Pow", 7, pow);
  OperatorRule clip = elementwiseRule(nullptr, {.maxInputs = 1});
  clip.lower = lowerClip;
  registry.add("onnx.Clip", 6, clip);
  OperatorRule cast =
      elementwiseRule(nullptr, {.resultElement = castTarget, .fold = foldCast, .maxInputs = 1});
  cast.lower = lowerCast;
  registry.add("onnx.Cast", 6, cast);
  cast.minInputs = 2;
  registry.add("onnx.CastLike", 15, cast);
}
