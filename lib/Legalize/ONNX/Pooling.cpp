// MaxPool, AveragePool, LpPool and the global ones.
#include "lib/Legalize/ONNX/BroadcastBuilder.h"
#include "lib/Legalize/ONNX/OperatorRegistry.h"
#include "lib/Legalize/ONNX/WindowBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

static Types inferPool(Node &node) {
  auto window = readWindow(node, std::nullopt);
  if (failed(window))
    return failure();
  SmallVector<int64_t> shape(node.shape(0).take_front(2));
  llvm::append_range(shape, window->output);
  auto type = checkedType(node, shape, node.element(0));
  if (failed(type))
    return failure();
  // MaxPool's second result.
  return SmallVector<Type>{*type, type->clone(IntegerType::get(node.op.getContext(), 64))};
}

/// Combines the elements of each window of a padded input [N, C, spatial..].
static Value poolWindows(B &b, Value x, ArrayRef<int64_t> resultShape, const Window &window,
                         Combiner combiner, bool isUnsigned) {
  Type element = cast<RankedTensorType>(x.getType()).getElementType();
  Type accumulator = combiner == Combiner::Sum ? wideType(element) : element;
  Value init = filled(b, resultShape, neutralElement(combiner, accumulator, isUnsigned));
  // The kernel's extents come from an operand without content: no other operand has them.
  Value kernel = tensor::EmptyOp::create(b, window.kernel, element);
  unsigned rank = window.rank(), numDims = 2 + 2 * rank;
  SmallVector<unsigned> outputLoops, kernelLoops;
  SmallVector<AffineExpr> kernelDims;
  for (unsigned i = 0; i < rank; ++i) {
    outputLoops.push_back(2 + i);
    kernelLoops.push_back(2 + rank + i);
    kernelDims.push_back(b.getAffineDimExpr(2 + rank + i));
  }
  SmallVector<AffineMap> maps{
      windowMap(b.getContext(), numDims, {0, 1}, outputLoops, kernelLoops, window),
      AffineMap::get(numDims, 0, kernelDims, b.getContext()),
      b.getMultiDimIdentityMap(numDims).getMajorSubMap(2 + rank)};
  SmallVector<utils::IteratorType> iterators(numDims, utils::IteratorType::reduction);
  std::fill_n(iterators.begin(), 2 + rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, init.getType(), ValueRange{x, kernel}, init, maps, iterators,
                                   [&](OpBuilder &inner, Location loc, ValueRange v) {
                                     ImplicitLocOpBuilder ib(loc, inner);
                                     Value value = v[0];
                                     if (value.getType() != accumulator)
                                       value = arith::ExtFOp::create(ib, accumulator, value);
                                     linalg::YieldOp::create(
                                         ib, combine(ib, combiner, v[2], value, isUnsigned));
                                   })
      .getResult(0);
}

static Lowered lowerMaxPool(Node &node, B &b) {
  if (node.wants(1))
    return LogicalResult(node.unsupported("result 'Indices' of MaxPool"));
  Window window = *readWindow(node, std::nullopt);
  bool isUnsigned = node.isUnsigned(0);
  auto lowest = neutralElement(Combiner::Max, node.resultType().getElementType(), isUnsigned);
  Value x = padForWindow(b, node.input(0), window, lowest);
  Value result = poolWindows(b, x, node.resultType().getShape(), window, Combiner::Max, isUnsigned);
  return SmallVector<Value>{result, Value()};
}

/// How many elements each window averages along spatial dim `d`: those inside the input,
/// or inside its padding too.
static SmallVector<int64_t> windowCounts(Node &node, const Window &window, size_t d,
                                         bool countPadding) {
  int64_t low = countPadding ? -window.padBegin[d] : 0;
  int64_t high = node.shape(0)[2 + d] + (countPadding ? window.padEnd[d] : 0);
  int64_t dilation = window.dilations[d];
  return llvm::map_to_vector(llvm::seq<int64_t>(0, window.output[d]), [&](int64_t o) {
    int64_t start = o * window.strides[d] - window.padBegin[d];
    int64_t first = start >= low ? 0 : llvm::divideCeil(low - start, dilation);
    int64_t end = start >= high ? 0 : llvm::divideCeil(high - start, dilation);
    return std::max<int64_t>(1, std::min(end, window.kernel[d]) - first);
  });
}

static Lowered lowerAveragePool(Node &node, B &b) {
  if (!node.isFloat(0))
    return LogicalResult(node.unsupported("expected floating-point elements"));
  Window window = *readWindow(node, std::nullopt);
  Type element = node.resultType().getElementType(), wide = wideType(element);
  Value x = padForWindow(b, node.input(0), window, neutralElement(Combiner::Sum, element));
  // The divisor is a constant where it is the same everywhere along a dim, else a vector.
  SmallVector<Value> operands{
      poolWindows(b, x, node.resultType().getShape(), window, Combiner::Sum, false)};
  double divisor = 1;
  for (size_t d = 0; d < window.rank(); ++d) {
    SmallVector<int64_t> counts =
        windowCounts(node, window, d, node.integer("count_include_pad", 0));
    if (counts.empty() || llvm::all_equal(counts)) {
      divisor *= counts.empty() ? 1 : counts.front();
      continue;
    }
    SmallVector<int64_t> shape(window.rank() - d, 1);
    shape[0] = counts.size();
    auto values = llvm::map_to_vector(
        counts, [&](int64_t c) -> Attribute { return b.getFloatAttr(wide, c); });
    operands.push_back(arith::ConstantOp::create(
        b, DenseElementsAttr::get(RankedTensorType::get(shape, wide), values)));
  }
  return one(elementwise(b, operands, element, [&](B &ib, ValueRange v) -> Value {
    Value by = arith::ConstantOp::create(ib, ib.getFloatAttr(wide, divisor));
    for (Value count : v.drop_front())
      by = arith::MulFOp::create(ib, by, count);
    Value mean = arith::DivFOp::create(ib, v[0], by);
    return mean.getType() == element ? mean : Value(arith::TruncFOp::create(ib, element, mean));
  }));
}

static Types inferGlobalPool(Node &node) {
  if (node.rank(0) < 2)
    return LogicalResult(node.wrong("expected an operand [N, C, spatial...]"));
  SmallVector<int64_t> shape(node.shape(0));
  std::fill(shape.begin() + 2, shape.end(), 1);
  return oneType(node, shape, node.element(0));
}

static SmallVector<int64_t> spatialAxes(Node &node) {
  return llvm::to_vector(llvm::seq<int64_t>(2, node.rank(0)));
}

static Lowered lowerGlobalMaxPool(Node &node, B &b) {
  return one(reduce(b, node.input(0), spatialAxes(node), /*keepDims=*/true, Combiner::Max));
}

static Lowered lowerGlobalAveragePool(Node &node, B &b) {
  if (!node.isFloat(0))
    return LogicalResult(node.unsupported("expected floating-point elements"));
  double count = 1;
  for (int64_t axis : spatialAxes(node))
    count *= node.shape(0)[axis];
  Type element = node.element(0), wide = wideType(element);
  Value x = castFloats(b, node.input(0), wide);
  Value sum = reduce(b, x, spatialAxes(node), /*keepDims=*/true, Combiner::Sum);
  Value mean = elementwise(b, sum, wide, [&](B &ib, ValueRange v) -> Value {
    return arith::DivFOp::create(ib, v[0],
                                 arith::ConstantOp::create(ib, ib.getFloatAttr(wide, count)));
  });
  return one(castFloats(b, mean, element));
}

void flow::onnx_rules::addPoolingRules(OperatorRegistry &registry) {
  registry.add("onnx.MaxPool", 1, {.infer = inferPool, .lower = lowerMaxPool});
  registry.add("onnx.AveragePool", 7, {.infer = inferPool, .lower = lowerAveragePool});
  registry.add("onnx.GlobalMaxPool", 1, {.infer = inferGlobalPool, .lower = lowerGlobalMaxPool});
  registry.add("onnx.GlobalAveragePool", 1,
               {.infer = inferGlobalPool, .lower = lowerGlobalAveragePool});
}
