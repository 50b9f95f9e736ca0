// What asks for shapes or changes only them: Shape, Reshape, Squeeze, Transpose, Expand, ...
#include "lib/Legalize/ONNX/BroadcastBuilder.h"
#include "lib/Legalize/ONNX/ConstantElements.h"
#include "lib/Legalize/ONNX/ReshapeBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

static int64_t product(ArrayRef<int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

/// The same elements under another shape.
static Folded foldSameElements(Node &node) {
  auto input = foldable(node, 0);
  auto result = emptyResult(node);
  if (!input || !result || product(input->shape) != product(result->shape))
    return {};
  input->shape = result->shape;
  return {input->attribute()};
}

static Lowered lowerReshape(Node &node, B &b) {
  return one(reshape(b, node.input(0), node.resultType().getShape()));
}

static OperatorRule reshapeRule(std::function<Types(Node &)> infer, unsigned minInputs = 1) {
  return {.infer = infer, .lower = lowerReshape, .fold = foldSameElements, .minInputs = minInputs};
}

//===----------------------------------------------------------------------===//
// Shape and Size
//===----------------------------------------------------------------------===//

static ArrayRef<int64_t> shapeRange(Node &node) {
  int64_t rank = node.rank(0);
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = clamp(node.integer("start", 0)), end = clamp(node.integer("end", rank));
  return start < end ? node.shape(0).slice(start, end - start) : ArrayRef<int64_t>();
}

static DenseElementsAttr integerTensor(Node &node, ArrayRef<int64_t> shape,
                                       ArrayRef<int64_t> values) {
  return DenseElementsAttr::get(
      RankedTensorType::get(shape, IntegerType::get(node.op.getContext(), 64)), values);
}

/// Results that only depend on types are constants, whatever their operands are.
static OperatorRule shapeQuestion(std::function<DenseElementsAttr(Node &)> answer) {
  return {
      .infer = [answer](Node &node) -> Types { return SmallVector<Type>{answer(node).getType()}; },
      .lower = [answer](Node &node, B &b) -> Lowered {
        return one(arith::ConstantOp::create(b, answer(node)));
      },
      .fold = [answer](Node &node) -> Folded { return {answer(node)}; }};
}

//===----------------------------------------------------------------------===//
// Reshape and its kin
//===----------------------------------------------------------------------===//

static Types inferReshape(Node &node) {
  auto wanted = node.constantIntegers(1);
  if (!wanted)
    return LogicalResult(node.unsupported("operand 'shape' must be known at compile time"));
  SmallVector<int64_t> shape(*wanted);
  int64_t inferred = -1, rest = 1;
  for (auto [i, extent] : llvm::enumerate(shape)) {
    if (extent == 0 && !node.integer("allowzero", 0)) {
      if (static_cast<int64_t>(i) >= node.rank(0))
        return LogicalResult(node.wrong("dim " + Twine(i) +
                                        " of the new shape is 0 (copy), but the operand has rank " +
                                        Twine(node.rank(0))));
      extent = node.shape(0)[i];
    }
    if (extent == -1) {
      if (inferred >= 0)
        return LogicalResult(node.wrong("the new shape has -1 twice"));
      inferred = i;
      continue;
    }
    if (extent < 0 || (extent && rest > (int64_t(1) << 48) / extent))
      return LogicalResult(node.wrong("the new shape has the dim " + Twine(extent)));
    rest *= extent;
  }
  int64_t count = product(node.shape(0));
  if (inferred >= 0) {
    if (rest == 0 || count % rest)
      return LogicalResult(node.wrong(Twine(count) + " elements can't be divided into dims of " +
                                      Twine(rest) + " elements (does the model fix its batch?)"));
    shape[inferred] = count / rest;
    rest = count;
  }
  if (rest != count)
    return LogicalResult(node.wrong("the new shape has " + Twine(rest) + " elements, the operand " +
                                    Twine(count) + " (does the model fix its batch?)"));
  return oneType(node, shape, node.element(0));
}

static Types inferFlatten(Node &node) {
  int64_t axis = node.integer("axis", 1), rank = node.rank(0);
  if (axis < -rank || axis > rank)
    return LogicalResult(
        node.wrong("axis " + Twine(axis) + " is out of range for rank " + Twine(rank)));
  axis = axis < 0 ? axis + rank : axis;
  return oneType(node,
                 {product(node.shape(0).take_front(axis)), product(node.shape(0).drop_front(axis))},
                 node.element(0));
}

static Types inferSqueeze(Node &node) {
  bool failedToRead;
  auto given = node.integersFrom("axes", 1, failedToRead);
  if (failedToRead)
    return failure();
  auto axes = node.axes(given.value_or(SmallVector<int64_t>()), node.rank(0));
  if (failed(axes))
    return failure();
  SmallVector<int64_t> shape;
  for (auto [d, extent] : llvm::enumerate(node.shape(0))) {
    bool drop = given ? llvm::is_contained(*axes, static_cast<int64_t>(d)) : extent == 1;
    if (drop && extent != 1)
      return LogicalResult(node.wrong("dim " + Twine(d) + " has " + Twine(extent) +
                                      " elements: only dims of size 1 "
                                      "can be squeezed"));
    if (!drop)
      shape.push_back(extent);
  }
  return oneType(node, shape, node.element(0));
}

static Types inferUnsqueeze(Node &node) {
  bool failedToRead;
  auto given = node.integersFrom("axes", 1, failedToRead);
  if (failedToRead)
    return failure();
  if (!given)
    return LogicalResult(node.wrong("axes are missing"));
  int64_t rank = node.rank(0) + given->size();
  auto axes = node.axes(*given, rank);
  if (failed(axes))
    return failure();
  SmallVector<int64_t> shape;
  const int64_t *next = node.shape(0).begin();
  for (int64_t d = 0; d < rank; ++d)
    shape.push_back(llvm::is_contained(*axes, d) ? 1 : *next++);
  return oneType(node, shape, node.element(0));
}

//===----------------------------------------------------------------------===//
// Transpose
//===----------------------------------------------------------------------===//

static FailureOr<SmallVector<int64_t>> permutationOf(Node &node) {
  int64_t rank = node.rank(0);
  SmallVector<int64_t> permutation =
      node.integers("perm").value_or(llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank))));
  auto mapped = node.axes(permutation, rank);
  if (failed(mapped))
    return failure();
  if (static_cast<int64_t>(mapped->size()) != rank)
    return LogicalResult(
        node.wrong("perm has " + Twine(mapped->size()) + " entries for rank " + Twine(rank)));
  return mapped;
}

static Types inferTranspose(Node &node) {
  auto permutation = permutationOf(node);
  if (failed(permutation))
    return failure();
  return oneType(node,
                 llvm::map_to_vector(*permutation, [&](int64_t p) { return node.shape(0)[p]; }),
                 node.element(0));
}

static Folded foldTranspose(Node &node) {
  auto input = foldable(node, 0);
  auto result = emptyResult(node);
  auto permutation = permutationOf(node);
  if (!input || !result || failed(permutation))
    return {};
  forEachIndex(result->shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from(index.size());
    for (auto [i, p] : llvm::enumerate(*permutation))
      from[p] = index[i];
    result->append(*input, broadcastPosition(input->shape, from));
  });
  return {result->attribute()};
}

//===----------------------------------------------------------------------===//
// Expand and Tile
//===----------------------------------------------------------------------===//

static Types inferExpand(Node &node) {
  auto wanted = node.constantIntegers(1);
  if (!wanted)
    return LogicalResult(node.unsupported("operand 'shape' must be known at compile time"));
  for (int64_t extent : *wanted)
    if (extent < 0)
      return LogicalResult(node.wrong("the new shape has the dim " + Twine(extent)));
  auto shape = broadcastShapes({node.shape(0), *wanted});
  if (!shape)
    return LogicalResult(node.wrong("the operand does not broadcast to the new shape"));
  return oneType(node, *shape, node.element(0));
}

static Folded foldExpand(Node &node) {
  auto input = foldable(node, 0);
  auto result = emptyResult(node);
  if (!input || !result)
    return {};
  forEachIndex(result->shape, [&](ArrayRef<int64_t> index) {
    result->append(*input, broadcastPosition(input->shape, index));
  });
  return {result->attribute()};
}

static Types inferTile(Node &node) {
  auto repeats = node.constantIntegers(1);
  if (!repeats)
    return LogicalResult(node.unsupported("operand 'repeats' must be known at compile time"));
  if (static_cast<int64_t>(repeats->size()) != node.rank(0))
    return LogicalResult(
        node.wrong("expected " + Twine(node.rank(0)) + " repeats, got " + Twine(repeats->size())));
  SmallVector<int64_t> shape;
  for (auto [extent, repeat] : llvm::zip(node.shape(0), *repeats)) {
    int64_t result;
    if (repeat < 0 || llvm::MulOverflow(extent, repeat, result))
      return LogicalResult(node.wrong("repeat " + Twine(repeat) + " is out of range"));
    shape.push_back(result);
  }
  return oneType(node, shape, node.element(0));
}

/// [d0, d1] -> [1, d0, 1, d1] -> [r0, d0, r1, d1] -> [r0 * d0, r1 * d1]
static Lowered lowerTile(Node &node, B &b) {
  SmallVector<int64_t> apart, repeated;
  auto repeats = *node.constantIntegers(1);
  for (auto [extent, repeat] : llvm::zip(node.shape(0), repeats)) {
    if (repeat != 1) {
      apart.push_back(1);
      repeated.push_back(repeat);
    }
    apart.push_back(extent);
    repeated.push_back(extent);
  }
  Value x = broadcastTo(b, reshape(b, node.input(0), apart), repeated);
  return one(reshape(b, x, node.resultType().getShape()));
}

//===----------------------------------------------------------------------===//
// Blocks of space and depth
//===----------------------------------------------------------------------===//

static Types inferBlocks(Node &node, bool toSpace) {
  int64_t block = node.integer("blocksize", 0);
  if (node.rank(0) != 4 || block < 1)
    return LogicalResult(node.wrong("expected an operand [N, C, H, W] and a positive blocksize"));
  SmallVector<int64_t> shape(node.shape(0));
  if (toSpace ? shape[1] % (block * block) : (shape[2] % block || shape[3] % block))
    return LogicalResult(node.wrong("the operand can't be divided into blocks of " + Twine(block)));
  shape[1] = toSpace ? shape[1] / (block * block) : shape[1] * block * block;
  for (unsigned d : {2, 3})
    shape[d] = toSpace ? shape[d] * block : shape[d] / block;
  return oneType(node, shape, node.element(0));
}

static Lowered lowerBlocks(Node &node, B &b, bool toSpace) {
  int64_t s = node.integer("blocksize", 1);
  auto in = node.shape(0), out = node.resultType().getShape();
  Value x = node.input(0);
  bool columnsFirst = node.text("mode", "DCR") == "CRD";
  if (!toSpace)
    x = transpose(b, reshape(b, x, {in[0], in[1], out[2], s, out[3], s}),
                  columnsFirst ? ArrayRef<int64_t>{0, 1, 3, 5, 2, 4}
                               : ArrayRef<int64_t>{0, 3, 5, 1, 2, 4});
  else if (columnsFirst)
    x = transpose(b, reshape(b, x, {in[0], out[1], s, s, in[2], in[3]}), {0, 1, 4, 2, 5, 3});
  else
    x = transpose(b, reshape(b, x, {in[0], s, s, out[1], in[2], in[3]}), {0, 3, 4, 1, 5, 2});
  return one(reshape(b, x, out));
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

static Types inferDropout(Node &node) {
  return SmallVector<Type>{node.type(0),
                           node.type(0).clone(IntegerType::get(node.op.getContext(), 1))};
}

static Lowered lowerDropout(Node &node, B &b) {
  auto ratio = node.constantScalar(1);
  bool training = node.has(2) && (!node.constantIntegers(2) || node.constantIntegers(2)->front());
  if (training && !(ratio && *ratio == 0))
    return LogicalResult(node.unsupported("Dropout in training mode"));
  SmallVector<Value> results{node.input(0)};
  if (node.numOutputs() > 1) {
    auto type = node.resultType(1);
    results.push_back(arith::ConstantOp::create(b, DenseElementsAttr::get(type, true)));
  }
  return results;
}

void flow::onnx_rules::addShapeRules(OperatorRegistry &registry) {
  registry.add("onnx.Shape", 1, shapeQuestion([](Node &node) {
                 ArrayRef<int64_t> range = shapeRange(node);
                 return integerTensor(node, static_cast<int64_t>(range.size()), range);
               }));
  registry.add("onnx.Size", 1, shapeQuestion([](Node &node) {
                 return integerTensor(node, {}, product(node.shape(0)));
               }));
  registry.add("onnx.Reshape", 5, reshapeRule(inferReshape, 2));
  registry.add("onnx.Flatten", 1, reshapeRule(inferFlatten));
  registry.add("onnx.Squeeze", 1, reshapeRule(inferSqueeze));
  registry.add("onnx.Unsqueeze", 1, reshapeRule(inferUnsqueeze));
  registry.add("onnx.Identity", 1, reshapeRule(sameType));
  registry.add("onnx.Dropout", 7, {.infer = inferDropout, .lower = lowerDropout});
  registry.add(
      "onnx.Transpose", 1,
      {.infer = inferTranspose,
       .lower = [](Node &node,
                   B &b) { return one(transpose(b, node.input(0), *permutationOf(node))); },
       .fold = foldTranspose});
  registry.add("onnx.Expand", 8,
               {.infer = inferExpand,
                .lower =
                    [](Node &node, B &b) {
                      return one(broadcastTo(b, node.input(0), node.resultType().getShape()));
                    },
                .fold = foldExpand,
                .minInputs = 2});
  registry.add("onnx.Tile", 6,
               {.infer = inferTile, .lower = lowerTile, .fold = nullptr, .minInputs = 2});
  for (bool toSpace : {true, false})
    registry.add(toSpace ? "onnx.DepthToSpace" : "onnx.SpaceToDepth", 1,
                 {.infer = [toSpace](Node &node) { return inferBlocks(node, toSpace); },
                  .lower = [toSpace](Node &node, B &b) { return lowerBlocks(node, b, toSpace); }});
}
