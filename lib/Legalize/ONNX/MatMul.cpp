// Contractions: MatMul of all ranks, Gemm.
#include "lib/Legalize/ONNX/BroadcastBuilder.h"
#include "lib/Legalize/ONNX/OperatorRegistry.h"
#include "lib/Legalize/ONNX/ReductionBuilder.h"
#include "lib/Legalize/ONNX/ReshapeBuilder.h"
#include "lib/Legalize/ONNX/ScalarMath.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

/// A contraction of two tensors into one of `shape`; f16 and bf16 accumulate in f32.
static Value contract(B &b, Value x, Value y, ArrayRef<int64_t> shape, ArrayRef<AffineMap> maps) {
  Type element = cast<RankedTensorType>(x.getType()).getElementType();
  Value init = filled(b, shape, neutralElement(Combiner::Sum, wideType(element)));
  auto plain2d = [&] {
    MLIRContext *c = b.getContext();
    AffineExpr m = getAffineDimExpr(0, c), n = getAffineDimExpr(1, c), k = getAffineDimExpr(2, c);
    return maps[0] == AffineMap::get(3, 0, {m, k}, c) && maps[1] == AffineMap::get(3, 0, {k, n}, c);
  };
  auto plain3d = [&] {
    MLIRContext *c = b.getContext();
    AffineExpr g = getAffineDimExpr(0, c), m = getAffineDimExpr(1, c), n = getAffineDimExpr(2, c),
               k = getAffineDimExpr(3, c);
    return maps[0] == AffineMap::get(4, 0, {g, m, k}, c) &&
           maps[1] == AffineMap::get(4, 0, {g, k, n}, c);
  };
  Value result;
  if (plain2d())
    result = linalg::MatmulOp::create(b, ValueRange{x, y}, init).getResult(0);
  else if (plain3d())
    result = linalg::BatchMatmulOp::create(b, ValueRange{x, y}, init).getResult(0);
  else
    result = linalg::ContractOp::create(b, TypeRange(init.getType()), ValueRange{x, y},
                                        ValueRange(init), b.getAffineMapArrayAttr(maps))
                 .getResult(0);
  return castFloats(b, result, element);
}

//===----------------------------------------------------------------------===//
// MatMul
//===----------------------------------------------------------------------===//

static Types inferMatMul(Node &node) {
  SmallVector<int64_t> x(node.shape(0)), y(node.shape(1));
  if (x.empty() || y.empty())
    return LogicalResult(node.wrong("operands must have at least one dim"));
  bool xVector = x.size() == 1, yVector = y.size() == 1;
  if (xVector)
    x.insert(x.begin(), 1);
  if (yVector)
    y.push_back(1);
  int64_t k = x.back(), other = y[y.size() - 2];
  if (k != other)
    return LogicalResult(
        node.wrong("the contracted dims differ: " + Twine(k) + " and " + Twine(other)));
  auto shape = broadcastShapes({ArrayRef(x).drop_back(2), ArrayRef(y).drop_back(2)});
  if (!shape)
    return LogicalResult(node.wrong("the batch dims do not broadcast to each other"));
  if (!xVector)
    shape->push_back(x[x.size() - 2]);
  if (!yVector)
    shape->push_back(y.back());
  return oneType(node, *shape, node.element(0));
}

/// Batch dims of size 1 that are broadcast are dropped; the map lists the others' loops.
static Value dropUnitBatchDims(B &b, Value value, ArrayRef<int64_t> batch, unsigned matrixDims,
                               SmallVectorImpl<AffineExpr> &dims) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t own = type.getRank() - matrixDims;
  SmallVector<int64_t> shape;
  for (int64_t d = 0; d < own; ++d) {
    int64_t loop = batch.size() - own + d;
    if (type.getDimSize(d) == 1 && batch[loop] != 1)
      continue;
    shape.push_back(type.getDimSize(d));
    dims.push_back(b.getAffineDimExpr(loop));
  }
  llvm::append_range(shape, type.getShape().drop_front(own));
  return reshape(b, value, shape);
}

static Lowered lowerMatMul(Node &node, B &b) {
  Value x = node.input(0), y = node.input(1);
  auto shape = node.resultType().getShape();
  bool xVector = node.rank(0) == 1, yVector = node.rank(1) == 1;
  unsigned batchRank = shape.size() - !xVector - !yVector;
  ArrayRef<int64_t> batch = shape.take_front(batchRank);
  // Loops: batch.., m, n, k; a vector operand has no m or n.
  unsigned m = batchRank, n = batchRank + !xVector, k = n + !yVector;
  SmallVector<AffineExpr> xDims, yDims;
  x = dropUnitBatchDims(b, x, batch, xVector ? 1 : 2, xDims);
  y = dropUnitBatchDims(b, y, batch, yVector ? 1 : 2, yDims);
  if (!xVector)
    xDims.push_back(b.getAffineDimExpr(m));
  xDims.push_back(b.getAffineDimExpr(k));
  yDims.push_back(b.getAffineDimExpr(k));
  if (!yVector)
    yDims.push_back(b.getAffineDimExpr(n));
  MLIRContext *c = b.getContext();
  SmallVector<AffineMap> maps{AffineMap::get(k + 1, 0, xDims, c),
                              AffineMap::get(k + 1, 0, yDims, c),
                              AffineMap::getMultiDimIdentityMap(k + 1, c).getMajorSubMap(k)};
  return one(contract(b, x, y, shape, maps));
}

//===----------------------------------------------------------------------===//
// Gemm
//===----------------------------------------------------------------------===//

static Types inferGemm(Node &node) {
  if (node.rank(0) != 2 || node.rank(1) != 2)
    return LogicalResult(node.wrong("operands must be matrices, got rank " + Twine(node.rank(0)) +
                                    " and " + Twine(node.rank(1))));
  bool transA = node.integer("transA", 0), transB = node.integer("transB", 0);
  int64_t m = node.shape(0)[transA], k = node.shape(0)[!transA], n = node.shape(1)[!transB];
  int64_t other = node.shape(1)[transB];
  if (k != other)
    return LogicalResult(
        node.wrong("the contracted dims differ: " + Twine(k) + " and " + Twine(other)));
  SmallVector<int64_t> result{m, n};
  if (node.has(2)) {
    auto shape = broadcastShapes({ArrayRef<int64_t>(result), node.shape(2)});
    if (!shape || *shape != result)
      return LogicalResult(
          node.wrong("operand C does not broadcast to [" + Twine(m) + ", " + Twine(n) + "]"));
  }
  return oneType(node, result, node.element(0));
}

/// value * factor
static Value scale(B &b, Value value, double factor) {
  if (factor == 1.0)
    return value;
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  return elementwise(b, value, element, [&](B &ib, ValueRange x) {
    Value by = scalar(ib, element, factor);
    return combine(ib, Combiner::Product, x[0], by);
  });
}

static Lowered lowerGemm(Node &node, B &b) {
  double alpha = node.real("alpha", 1.0), beta = node.real("beta", 1.0);
  bool isInteger = !node.isFloat(0);
  if (isInteger && (alpha != static_cast<int64_t>(alpha) || beta != static_cast<int64_t>(beta)))
    return LogicalResult(node.unsupported("alpha and beta must be whole numbers for integers"));
  bool transA = node.integer("transA", 0), transB = node.integer("transB", 0);
  AffineExpr m = b.getAffineDimExpr(0), n = b.getAffineDimExpr(1), k = b.getAffineDimExpr(2);
  MLIRContext *c = b.getContext();
  SmallVector<AffineMap> maps{
      transA ? AffineMap::get(3, 0, {k, m}, c) : AffineMap::get(3, 0, {m, k}, c),
      transB ? AffineMap::get(3, 0, {n, k}, c) : AffineMap::get(3, 0, {k, n}, c),
      AffineMap::get(3, 0, {m, n}, c)};
  Value result = contract(b, node.input(0), node.input(1), node.resultType().getShape(), maps);
  result = scale(b, result, alpha);
  if (node.has(2) && beta != 0)
    result =
        elementwise(b, {result, scale(b, node.input(2), beta)}, node.resultType().getElementType(),
                    [](B &ib, ValueRange x) { return combine(ib, Combiner::Sum, x[0], x[1]); });
  return one(result);
}

void flow::onnx_rules::addMatMulRules(OperatorRegistry &registry) {
  registry.add("onnx.MatMul", 1,
               {.infer = inferMatMul, .lower = lowerMatMul, .fold = nullptr, .minInputs = 2});
  registry.add("onnx.Gemm", 7,
               {.infer = inferGemm, .lower = lowerGemm, .fold = nullptr, .minInputs = 2});
}
