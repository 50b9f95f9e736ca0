// Conv of any rank: named ops for one group, a generic over the window map for several.
#include "lib/Legalize/ONNX/BroadcastBuilder.h"
#include "lib/Legalize/ONNX/OperatorRegistry.h"
#include "lib/Legalize/ONNX/ReshapeBuilder.h"
#include "lib/Legalize/ONNX/WindowBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

static FailureOr<Window> convWindow(Node &node) {
  if (node.rank(0) < 3 || node.rank(1) != node.rank(0))
    return LogicalResult(
        node.wrong("expected operands [N, C, spatial...] and [M, C/group, kernel...], got rank " +
                   Twine(node.rank(0)) + " and " + Twine(node.rank(1))));
  return readWindow(node, node.shape(1).drop_front(2));
}

static Types inferConv(Node &node) {
  auto window = convWindow(node);
  if (failed(window))
    return failure();
  int64_t groups = node.integer("group", 1), channels = node.shape(0)[1],
          filters = node.shape(1)[0];
  if (groups < 1 || channels != groups * node.shape(1)[1] || filters % groups)
    return LogicalResult(node.wrong(Twine(channels) + " channels do not fit a weight for " +
                                    Twine(node.shape(1)[1]) + " channels in " + Twine(groups) +
                                    " groups of " + Twine(filters) + " filters"));
  if (node.has(2) && (node.rank(2) != 1 || node.shape(2)[0] != filters))
    return LogicalResult(node.wrong("expected a bias of " + Twine(filters) + " elements"));
  SmallVector<int64_t> shape{node.shape(0)[0], filters};
  llvm::append_range(shape, window->output);
  return oneType(node, shape, node.element(0));
}

/// One group, up to three spatial dims.
static Value namedConvolution(B &b, Value x, Value w, Value init, const Window &window) {
  Type type = init.getType();
  auto strides = b.getI64VectorAttr(window.strides),
       dilations = b.getI64VectorAttr(window.dilations);
  SmallVector<Value> inputs{x, w};
  switch (window.rank()) {
  case 1:
    return linalg::Conv1DNcwFcwOp::create(b, type, inputs, init, strides, dilations).getResult(0);
  case 2:
    return linalg::Conv2DNchwFchwOp::create(b, type, inputs, init, strides, dilations).getResult(0);
  default:
    return linalg::Conv3DNcdhwFcdhwOp::create(b, type, inputs, init, strides, dilations)
        .getResult(0);
  }
}

/// [N, G, C, spatial] * [G, F, C, kernel] -> [N, G, F, output].
static Value groupedConvolution(B &b, Value x, Value w, int64_t groups, RankedTensorType resultType,
                                const Window &window) {
  auto xType = cast<RankedTensorType>(x.getType()), wType = cast<RankedTensorType>(w.getType());
  auto split = [&](ArrayRef<int64_t> shape, unsigned dim) {
    SmallVector<int64_t> result(shape);
    result[dim] /= groups;
    result.insert(result.begin() + dim, groups);
    return result;
  };
  x = reshape(b, x, split(xType.getShape(), 1));
  w = reshape(b, w, split(wType.getShape(), 0));
  SmallVector<int64_t> shape = split(resultType.getShape(), 1);
  Value init = filled(b, shape, neutralElement(Combiner::Sum, resultType.getElementType()));
  // Loops: n, g, f, output.., c, kernel..
  unsigned rank = window.rank(), c = 3 + rank, numDims = 4 + 2 * rank;
  SmallVector<unsigned> outputLoops, kernelLoops;
  for (unsigned i = 0; i < rank; ++i) {
    outputLoops.push_back(3 + i);
    kernelLoops.push_back(c + 1 + i);
  }
  SmallVector<AffineExpr> wDims{b.getAffineDimExpr(1), b.getAffineDimExpr(2),
                                b.getAffineDimExpr(c)};
  for (unsigned loop : kernelLoops)
    wDims.push_back(b.getAffineDimExpr(loop));
  SmallVector<AffineMap> maps{
      windowMap(b.getContext(), numDims, {0, 1, c}, outputLoops, kernelLoops, window),
      AffineMap::get(numDims, 0, wDims, b.getContext()),
      b.getMultiDimIdentityMap(numDims).getMajorSubMap(3 + rank)};
  SmallVector<utils::IteratorType> iterators(numDims, utils::IteratorType::reduction);
  std::fill_n(iterators.begin(), 3 + rank, utils::IteratorType::parallel);
  Type accumulator = resultType.getElementType();
  auto generic = linalg::GenericOp::create(
      b, init.getType(), ValueRange{x, w}, init, maps, iterators,
      [&](OpBuilder &inner, Location loc, ValueRange v) {
        ImplicitLocOpBuilder ib(loc, inner);
        Value left = v[0], right = v[1];
        if (left.getType() != accumulator) {
          left = arith::ExtFOp::create(ib, accumulator, left);
          right = arith::ExtFOp::create(ib, accumulator, right);
        }
        linalg::YieldOp::create(
            ib, combine(ib, Combiner::Sum, v[2], combine(ib, Combiner::Product, left, right)));
      });
  return reshape(b, generic.getResult(0), resultType.getShape());
}

static Lowered lowerConv(Node &node, B &b) {
  if (!node.isFloat(0))
    return LogicalResult(node.unsupported("expected floating-point elements"));
  Window window = *convWindow(node);
  int64_t groups = node.integer("group", 1);
  RankedTensorType type = node.resultType();
  Type element = type.getElementType();
  auto wide = cast<RankedTensorType>(type.clone(wideType(element)));
  Value x = padForWindow(b, node.input(0), window, neutralElement(Combiner::Sum, element));
  Value result;
  if (groups == 1 && window.rank() <= 3) {
    Value init = filled(b, type.getShape(), neutralElement(Combiner::Sum, wide.getElementType()));
    result = namedConvolution(b, x, node.input(1), init, window);
  } else {
    result = groupedConvolution(b, x, node.input(1), groups, wide, window);
  }
  if (node.has(2)) {
    SmallVector<int64_t> shape(node.rank(0) - 1, 1);
    shape[0] = type.getDimSize(1);
    Value bias = castFloats(b, node.input(2), wide.getElementType());
    // [M] becomes [M, 1, ..] to broadcast along the channels.
    result =
        elementwise(b, {result, reshape(b, bias, shape)}, wide.getElementType(),
                    [](B &ib, ValueRange v) { return combine(ib, Combiner::Sum, v[0], v[1]); });
  }
  return one(castFloats(b, result, element));
}

void flow::onnx_rules::addConvolutionRules(OperatorRegistry &registry) {
  registry.add("onnx.Conv", 1,
               {.infer = inferConv, .lower = lowerConv, .fold = nullptr, .minInputs = 2});
}
