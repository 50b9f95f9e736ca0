// Comparisons, logic and selection by element.
#include "lib/Legalize/ONNX/ElementwiseRule.h"
#include "lib/Legalize/ONNX/ScalarMath.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

using F = arith::CmpFPredicate;
using I = arith::CmpIPredicate;

static void addComparison(OperatorRegistry &registry, StringRef name, F forFloats, I forSigned,
                          I forUnsigned, std::function<Folded(Node &)> fold) {
  auto body = [=](B &b, Node &node, ValueRange x) {
    bool isUnsigned = node.isUnsigned(0) || node.element(0).isInteger(1);
    return compare(b, forFloats, isUnsigned ? forUnsigned : forSigned, x[0], x[1]);
  };
  registry.add(name, 7,
               elementwiseRule(body, {.resultElement = boolElement,
                                      .wide = false,
                                      .floatsOnly = false,
                                      .fold = fold,
                                      .minInputs = 2}));
}

/// Folds a comparison by its meaning on both kinds of numbers.
template <typename Compare> static std::function<Folded(Node &)> foldCompare(Compare compare) {
  return foldElementwise([=](ArrayRef<int64_t> x) -> int64_t { return compare(x[0], x[1]); },
                         [=](ArrayRef<double> x) -> double { return compare(x[0], x[1]); });
}

template <typename Op>
static void addBitwise(OperatorRegistry &registry, StringRef name, StringRef bitwiseName,
                       int64_t (*fold)(int64_t, int64_t)) {
  auto body = [](B &b, Node &, ValueRange x) -> Value { return Op::create(b, x[0], x[1]); };
  ElementwiseOptions options{
      .wide = false,
      .floatsOnly = false,
      .fold = foldElementwise([=](ArrayRef<int64_t> x) { return fold(x[0], x[1]); }, nullptr),
      .minInputs = 2};
  registry.add(name, 7, elementwiseRule(body, options));
  registry.add(bitwiseName, 18, elementwiseRule(body, options));
}

static Value lowerNot(B &b, Node &, ValueRange x) {
  return arith::XOrIOp::create(b, x[0], scalar(b, x[0].getType(), -1));
}

static Value lowerShift(B &b, Node &node, ValueRange x) {
  // A shift by the width or more is undefined in the IR and 0 here.
  Type type = x[0].getType();
  Value width = scalar(b, type, type.getIntOrFloatBitWidth()), zero = scalar(b, type, 0);
  Value fits = arith::CmpIOp::create(b, I::ult, x[1], width);
  Value amount = select(b, fits, x[1], zero);
  Value shifted = node.text("direction", "") == "LEFT"
                      ? Value(arith::ShLIOp::create(b, x[0], amount))
                      : Value(arith::ShRUIOp::create(b, x[0], amount));
  return select(b, fits, shifted, zero);
}

static Value lowerIsInf(B &b, Node &node, ValueRange x) {
  double inf = std::numeric_limits<double>::infinity();
  Type type = x[0].getType();
  Value result = arith::ConstantOp::create(b, b.getBoolAttr(false));
  if (node.integer("detect_positive", 1))
    result = arith::OrIOp::create(b, result,
                                  arith::CmpFOp::create(b, F::OEQ, x[0], scalar(b, type, inf)));
  if (node.integer("detect_negative", 1))
    result = arith::OrIOp::create(b, result,
                                  arith::CmpFOp::create(b, F::OEQ, x[0], scalar(b, type, -inf)));
  return result;
}

static Folded foldWhere(Node &node) {
  auto inputs = foldableInputs(node);
  auto result = emptyResult(node);
  if (!inputs || !result || inputs->size() != 3)
    return {};
  forEachIndex(result->shape, [&](ArrayRef<int64_t> index) {
    const Elements &from =
        (*inputs)[(*inputs)[0].integers[broadcastPosition((*inputs)[0].shape, index)] ? 1 : 2];
    result->append(from, broadcastPosition(from.shape, index));
  });
  return {result->attribute()};
}

void flow::onnx_rules::addLogicalRules(OperatorRegistry &registry) {
  addComparison(registry, "onnx.Equal", F::OEQ, I::eq, I::eq,
                foldCompare([](auto x, auto y) { return x == y; }));
  addComparison(registry, "onnx.Less", F::OLT, I::slt, I::ult,
                foldCompare([](auto x, auto y) { return x < y; }));
  addComparison(registry, "onnx.Greater", F::OGT, I::sgt, I::ugt,
                foldCompare([](auto x, auto y) { return x > y; }));
  addComparison(registry, "onnx.LessOrEqual", F::OLE, I::sle, I::ule,
                foldCompare([](auto x, auto y) { return x <= y; }));
  addComparison(registry, "onnx.GreaterOrEqual", F::OGE, I::sge, I::uge,
                foldCompare([](auto x, auto y) { return x >= y; }));
  addBitwise<arith::AndIOp>(registry, "onnx.And", "onnx.BitwiseAnd",
                            [](int64_t x, int64_t y) { return x & y; });
  addBitwise<arith::OrIOp>(registry, "onnx.Or", "onnx.BitwiseOr",
                           [](int64_t x, int64_t y) { return x | y; });
  addBitwise<arith::XOrIOp>(registry, "onnx.Xor", "onnx.BitwiseXor",
                            [](int64_t x, int64_t y) { return x ^ y; });
  ElementwiseOptions integers{.wide = false, .floatsOnly = false};
  registry.add("onnx.BitwiseNot", 18, elementwiseRule(lowerNot, integers));
  integers.fold = foldElementwise([](ArrayRef<int64_t> x) -> int64_t { return !x[0]; }, nullptr);
  registry.add("onnx.Not", 1, elementwiseRule(lowerNot, integers));
  registry.add("onnx.BitShift", 11,
               elementwiseRule(lowerShift, {.wide = false, .floatsOnly = false, .minInputs = 2}));
  registry.add("onnx.IsInf", 10, elementwiseRule(lowerIsInf, {.resultElement = boolElement}));
  registry.add("onnx.IsNaN", 9,
               elementwiseRule(
                   [](B &b, Node &, ValueRange x) -> Value {
                     return arith::CmpFOp::create(b, F::UNO, x[0], x[0]);
                   },
                   {.resultElement = boolElement}));
  registry.add(
      "onnx.Where", 9,
      elementwiseRule([](B &b, Node &, ValueRange x) { return select(b, x[0], x[1], x[2]); },
                      {.resultElement = [](Node &node) { return node.element(1); },
                       .wide = false,
                       .floatsOnly = false,
                       .fold = foldWhere,
                       .minInputs = 3}));
}
