// Reverse of a gather: a linalg body that reads a table by tensor.extract.
#include "lib/Training/GenericBuilders.h"
#include "lib/Training/Gradients/Reverse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace flow::training {
namespace {

// A scatter-add: a loop over rows of the cotangent in memory order, so that duplicates add up in
// one order. Rows are the trailing dims that the gather copies whole.
class ScatterAdd {
public:
  ScatterAdd(OpBuilder &b, linalg::LinalgOp op, tensor::ExtractOp read, const LinalgOutput &out)
      : b(b), op(op), read(read), out(out), loc(op.getLoc()), loops(op.getNumLoops()),
        tableRank(read.getTensor().getType().getRank()) {}
  FailureOr<Value> build(Value into);

private:
  void findRows();
  LogicalResult mapIndices();
  Value addRow(Value into);

  OpBuilder &b;
  linalg::LinalgOp op;
  tensor::ExtractOp read;
  const LinalgOutput &out;
  Location loc;
  int64_t loops, tableRank, rowDims = 0;
  SmallVector<Value> inductionVars;
  IRMapping map;
};

void ScatterAdd::findRows() {
  while (rowDims < tableRank && rowDims < loops) {
    auto index = read.getIndices()[tableRank - 1 - rowDims].getDefiningOp<linalg::IndexOp>();
    if (!index || static_cast<int64_t>(index.getDim()) != loops - 1 - rowDims)
      return;
    ++rowDims;
  }
}

// The indices as the body computes them, from the values at the loops' position.
LogicalResult ScatterAdd::mapIndices() {
  for (OpOperand *in : op.getDpsInputOperands()) {
    BlockArgument arg = op.getBlock()->getArgument(in->getOperandNumber());
    if (arg.use_empty())
      continue;
    SmallVector<Value> at;
    for (AffineExpr e : op.getMatchingIndexingMap(in).getResults()) {
      auto d = dyn_cast<AffineDimExpr>(e);
      if (!d || d.getPosition() >= loops - rowDims)
        return noGradient(op) << "a gather whose index varies within a row";
      at.push_back(inductionVars[d.getPosition()]);
    }
    map.map(arg, tensor::ExtractOp::create(b, loc, in->get(), at).getResult());
  }
  for (Operation &o : op.getBlock()->without_terminator()) {
    if (&o == read)
      break;
    if (auto index = dyn_cast<linalg::IndexOp>(o)) {
      if (static_cast<int64_t>(index.getDim()) < loops - rowDims)
        map.map(index.getResult(), inductionVars[index.getDim()]);
    } else {
      b.clone(o, map);
    }
  }
  return success();
}

Value ScatterAdd::addRow(Value into) {
  RankedTensorType type = tensorTypeOf(out.result);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, out.result);
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets, extents, fromOffsets, fromExtents;
  for (int64_t d = 0; d < tableRank; ++d) {
    bool row = d >= tableRank - rowDims;
    offsets.push_back(row ? zero : OpFoldResult(map.lookupOrDefault(read.getIndices()[d])));
    extents.push_back(row ? sizes[loops - tableRank + d] : one);
  }
  for (int64_t l = 0; l < loops; ++l) {
    bool row = l >= loops - rowDims;
    fromOffsets.push_back(row ? zero : OpFoldResult(inductionVars[l]));
    fromExtents.push_back(row ? sizes[l] : one);
  }
  auto rowType = RankedTensorType::get(type.getShape().take_back(rowDims), type.getElementType());
  SmallVector<OpFoldResult> strides(tableRank, one), fromStrides(loops, one);
  Value old = tensor::ExtractSliceOp::create(b, loc, rowType, into, offsets, extents, strides);
  Value g = tensor::ExtractSliceOp::create(b, loc, rowType, out.cotangent, fromOffsets, fromExtents,
                                           fromStrides);
  Value sum = addTensors(b, loc, old, g);
  return tensor::InsertSliceOp::create(b, loc, sum, into, offsets, extents, strides);
}

FailureOr<Value> ScatterAdd::build(Value into) {
  findRows();
  OpBuilder::InsertionGuard guard(b);
  Value zero = scalarConstant(b, loc, b.getIndexType(), 0);
  Value one = scalarConstant(b, loc, b.getIndexType(), 1);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, out.result);
  Value table = into, result;
  for (int64_t l = 0; l < loops - rowDims; ++l) {
    Value extent = getValueOrCreateConstantIndexOp(b, loc, sizes[l]);
    auto loop = scf::ForOp::create(b, loc, zero, extent, one, table);
    if (l == 0)
      result = loop.getResult(0);
    else
      scf::YieldOp::create(b, loc, loop.getResults());
    table = loop.getRegionIterArg(0);
    inductionVars.push_back(loop.getInductionVar());
    b.setInsertionPointToStart(loop.getBody());
  }
  if (failed(mapIndices()))
    return failure();
  Value updated = addRow(table);
  if (!result)
    return updated;
  scf::YieldOp::create(b, loc, updated);
  return result;
}

} // namespace

LogicalResult Reverse::reverseGather(linalg::LinalgOp op, tensor::ExtractOp read,
                                     ArrayRef<LinalgOutput> outs) {
  if (outs.size() != 1 || outs[0].kind != LinalgOutput::Map || outs[0].scalar != read.getResult() ||
      !outs[0].map.isIdentity())
    return noGradient(op) << "a gather that is not alone in its op";
  FailureOr<Value> g = ScatterAdd(b, op, read, outs[0]).build(lookupOrZero(read.getTensor()));
  if (failed(g))
    return failure();
  set(read.getTensor(), *g);
  return success();
}

} // namespace flow::training
