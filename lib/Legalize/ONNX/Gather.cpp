// Gather, GatherElements, GatherND.
#include "lib/Legalize/ONNX/BroadcastBuilder.h"
#include "lib/Legalize/ONNX/ConstantElements.h"
#include "lib/Legalize/ONNX/GatherBuilder.h"
#include "lib/Legalize/ONNX/ReshapeBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

Value flow::onnx_rules::gather(B &b, Value table, ArrayRef<int64_t> shape, ValueRange operands,
                               ArrayRef<AffineMap> operandMaps,
                               llvm::function_ref<SmallVector<Value>(B &, ValueRange)> place) {
  Type element = cast<RankedTensorType>(table.getType()).getElementType();
  Value init = tensor::EmptyOp::create(b, shape, element);
  SmallVector<AffineMap> maps(operandMaps);
  maps.push_back(b.getMultiDimIdentityMap(shape.size()));
  SmallVector<utils::IteratorType> iterators(shape.size(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, init.getType(), operands, init, maps, iterators,
                                   [&](OpBuilder &inner, Location loc, ValueRange scalars) {
                                     B ib(loc, inner);
                                     Value value = tensor::ExtractOp::create(
                                         ib, table, place(ib, scalars.drop_back()));
                                     linalg::YieldOp::create(ib, value);
                                   })
      .getResult(0);
}

Value flow::onnx_rules::safeIndex(B &b, Value index, int64_t extent, bool isUnsigned) {
  Value at = isUnsigned ? Value(arith::IndexCastUIOp::create(b, b.getIndexType(), index))
                        : Value(arith::IndexCastOp::create(b, b.getIndexType(), index));
  Value zero = arith::ConstantIndexOp::create(b, 0),
        size = arith::ConstantIndexOp::create(b, extent);
  Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, at, zero);
  at = arith::SelectOp::create(b, negative, arith::AddIOp::create(b, at, size), at);
  at = arith::MaxSIOp::create(b, at, zero);
  return arith::MinSIOp::create(b, at, arith::ConstantIndexOp::create(b, extent - 1));
}

static bool hasEmptyTable(Node &node, ArrayRef<int64_t> shape) {
  return llvm::is_contained(node.shape(0), 0) && !llvm::is_contained(shape, 0);
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

static Types inferGather(Node &node) {
  auto axis = node.axis(node.integer("axis", 0), node.rank(0));
  if (failed(axis))
    return failure();
  SmallVector<int64_t> shape(node.shape(0).take_front(*axis));
  llvm::append_range(shape, node.shape(1));
  llvm::append_range(shape, node.shape(0).drop_front(*axis + 1));
  if (hasEmptyTable(node, shape))
    return LogicalResult(node.wrong("gathers from a dim without elements"));
  if (auto indices = node.constantIntegers(1))
    for (int64_t index : *indices)
      if (index < -node.shape(0)[*axis] || index >= node.shape(0)[*axis])
        return LogicalResult(node.wrong("index " + Twine(index) + " is out of range for dim " +
                                        Twine(*axis) + " of " + Twine(node.shape(0)[*axis]) +
                                        " elements"));
  return oneType(node, shape, node.element(0));
}

static Folded foldGather(Node &node) {
  auto inputs = foldableInputs(node);
  auto result = emptyResult(node);
  if (!inputs || !result || inputs->size() != 2)
    return {};
  const Elements &table = (*inputs)[0], &indices = (*inputs)[1];
  int64_t axis = *node.axis(node.integer("axis", 0), node.rank(0)), extent = table.shape[axis];
  size_t indexRank = indices.shape.size();
  forEachIndex(result->shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> at(index.take_front(axis));
    int64_t which =
        indices.integers[broadcastPosition(indices.shape, index.slice(axis, indexRank))];
    at.push_back(which < 0 ? which + extent : which);
    llvm::append_range(at, index.drop_front(axis + indexRank));
    result->append(table, broadcastPosition(table.shape, at));
  });
  return {result->attribute()};
}

static Lowered lowerGather(Node &node, B &b) {
  int64_t axis = *node.axis(node.integer("axis", 0), node.rank(0));
  auto shape = node.resultType().getShape();
  unsigned indexRank = node.rank(1);
  // One constant index is a slice, which splits and differentiates better.
  auto constant = node.constantIntegers(1);
  if (constant && constant->size() == 1) {
    SmallVector<int64_t> sizes(node.shape(0));
    SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
        strides(sizes.size(), b.getIndexAttr(1));
    offsets[axis] =
        b.getIndexAttr(constant->front() < 0 ? constant->front() + sizes[axis] : constant->front());
    sizes[axis] = 1;
    Value slice = tensor::ExtractSliceOp::create(
        b, node.input(0), offsets, getAsIndexOpFoldResult(b.getContext(), sizes), strides);
    return one(reshape(b, slice, shape));
  }
  SmallVector<AffineExpr> indexDims;
  for (unsigned i = 0; i < indexRank; ++i)
    indexDims.push_back(b.getAffineDimExpr(axis + i));
  AffineMap map = AffineMap::get(shape.size(), 0, indexDims, b.getContext());
  return one(gather(b, node.input(0), shape, node.input(1), map, [&](B &ib, ValueRange v) {
    SmallVector<Value> at;
    for (int64_t d = 0; d < node.rank(0); ++d) {
      if (d == axis)
        at.push_back(safeIndex(ib, v[0], node.shape(0)[axis], node.isUnsigned(1)));
      else
        at.push_back(linalg::IndexOp::create(ib, d < axis ? d : d + indexRank - 1));
    }
    return at;
  }));
}

//===----------------------------------------------------------------------===//
// GatherElements and GatherND
//===----------------------------------------------------------------------===//

static Types inferGatherElements(Node &node) {
  if (failed(node.axis(node.integer("axis", 0), node.rank(0))))
    return failure();
  if (node.rank(0) != node.rank(1))
    return LogicalResult(node.wrong("expected indices of rank " + Twine(node.rank(0)) +
                                    ", got rank " + Twine(node.rank(1))));
  int64_t axis = *node.axis(node.integer("axis", 0), node.rank(0));
  for (int64_t d = 0; d < node.rank(0); ++d)
    if (d != axis && node.shape(1)[d] > node.shape(0)[d])
      return LogicalResult(
          node.wrong("dim " + Twine(d) + " of the indices is larger than the table's"));
  if (hasEmptyTable(node, node.shape(1)))
    return LogicalResult(node.wrong("gathers from a dim without elements"));
  return oneType(node, node.shape(1), node.element(0));
}

static Lowered lowerGatherElements(Node &node, B &b) {
  int64_t axis = *node.axis(node.integer("axis", 0), node.rank(0));
  return one(gather(b, node.input(0), node.shape(1), node.input(1),
                    b.getMultiDimIdentityMap(node.rank(1)), [&](B &ib, ValueRange v) {
                      SmallVector<Value> at;
                      for (int64_t d = 0; d < node.rank(0); ++d)
                        at.push_back(
                            d == axis ? safeIndex(ib, v[0], node.shape(0)[axis], node.isUnsigned(1))
                                      : Value(linalg::IndexOp::create(ib, d)));
                      return at;
                    }));
}

static Types inferGatherND(Node &node) {
  int64_t batch = node.integer("batch_dims", 0), rank = node.rank(0), indexRank = node.rank(1);
  int64_t depth = indexRank ? node.shape(1).back() : 0;
  if (batch < 0 || batch >= std::min(rank, indexRank) || depth < 1 || batch + depth > rank)
    return LogicalResult(node.wrong("indices of depth " + Twine(depth) + " after " + Twine(batch) +
                                    " batch dims do not fit a table of rank " + Twine(rank)));
  SmallVector<int64_t> shape(node.shape(1).drop_back());
  for (int64_t d = 0; d < batch; ++d)
    if (shape[d] != node.shape(0)[d])
      return LogicalResult(node.wrong("batch dim " + Twine(d) + " differs between operands"));
  llvm::append_range(shape, node.shape(0).drop_front(batch + depth));
  if (hasEmptyTable(node, shape))
    return LogicalResult(node.wrong("gathers from a dim without elements"));
  return oneType(node, shape, node.element(0));
}

static Lowered lowerGatherND(Node &node, B &b) {
  int64_t batch = node.integer("batch_dims", 0), depth = node.shape(1).back(),
          lead = node.rank(1) - 1;
  auto shape = node.resultType().getShape();
  // One operand per component of the index.
  SmallVector<Value> components;
  SmallVector<AffineMap> maps;
  SmallVector<int64_t> sizes(node.shape(1));
  sizes.back() = 1;
  for (int64_t k = 0; k < depth; ++k) {
    SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
        strides(sizes.size(), b.getIndexAttr(1));
    offsets.back() = b.getIndexAttr(k);
    Value part = tensor::ExtractSliceOp::create(
        b, node.input(1), offsets, getAsIndexOpFoldResult(b.getContext(), sizes), strides);
    components.push_back(reshape(b, part, node.shape(1).drop_back()));
    maps.push_back(b.getMultiDimIdentityMap(shape.size()).getMajorSubMap(lead));
  }
  return one(gather(b, node.input(0), shape, components, maps, [&](B &ib, ValueRange v) {
    SmallVector<Value> at;
    for (int64_t d = 0; d < node.rank(0); ++d) {
      if (d < batch)
        at.push_back(linalg::IndexOp::create(ib, d));
      else if (d < batch + depth)
        at.push_back(safeIndex(ib, v[d - batch], node.shape(0)[d], node.isUnsigned(1)));
      else
        at.push_back(linalg::IndexOp::create(ib, lead + d - batch - depth));
    }
    return at;
  }));
}

void flow::onnx_rules::addGatherRules(OperatorRegistry &registry) {
  registry.add("onnx.Gather", 1,
               {.infer = inferGather, .lower = lowerGather, .fold = foldGather, .minInputs = 2});
  registry.add("onnx.GatherElements", 11,
               {.infer = inferGatherElements,
                .lower = lowerGatherElements,
                .fold = nullptr,
                .minInputs = 2});
  registry.add("onnx.GatherND", 11,
               {.infer = inferGatherND, .lower = lowerGatherND, .fold = nullptr, .minInputs = 2});
}
