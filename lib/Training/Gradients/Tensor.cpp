// Rules of the tensor dialect, and of scalars at function level.
#include "lib/Training/GenericBuilders.h"
#include "lib/Training/Gradients/Reverse.h"
#include "lib/Training/Gradients/ScalarAdjoint.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace flow::training {

// Adds into the slice of the running gradient: pad + add would cost a pass over the whole source
// per slice.
LogicalResult Reverse::reverseExtractSlice(tensor::ExtractSliceOp op) {
  Location loc = op.getLoc();
  Value source = op.getSource(), piece = lookup(op), into = lookup(source);
  if (!isActive(source))
    return success();
  if (into) {
    Value current =
        tensor::ExtractSliceOp::create(b, loc, tensorTypeOf(piece), into, op.getMixedOffsets(),
                                       op.getMixedSizes(), op.getMixedStrides());
    piece = addTensors(b, loc, current, piece);
  } else {
    into = filled(b, loc, tensorTypeOf(source), 0, source);
  }
  set(source, tensor::InsertSliceOp::create(b, loc, piece, into, op.getMixedOffsets(),
                                            op.getMixedSizes(), op.getMixedStrides()));
  return success();
}

LogicalResult Reverse::reverseInsertSlice(tensor::InsertSliceOp op) {
  Location loc = op.getLoc();
  Value g = lookup(op);
  if (isActive(op.getSource()))
    add(op.getSource(),
        tensor::ExtractSliceOp::create(b, loc, op.getSourceType(), g, op.getMixedOffsets(),
                                       op.getMixedSizes(), op.getMixedStrides()));
  if (isActive(op.getDest())) {
    Value zero = filled(b, loc, op.getSourceType(), 0, op.getSource());
    add(op.getDest(), tensor::InsertSliceOp::create(b, loc, zero, g, op.getMixedOffsets(),
                                                    op.getMixedSizes(), op.getMixedStrides()));
  }
  return success();
}

LogicalResult Reverse::reverseConcat(tensor::ConcatOp op) {
  Location loc = op.getLoc();
  Value g = lookup(op);
  int64_t rank = tensorTypeOf(g).getRank(), dim = op.getDim();
  SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0)), strides(rank, b.getIndexAttr(1));
  AffineExpr sum = b.getAffineDimExpr(0) + b.getAffineDimExpr(1);
  for (Value in : op.getInputs()) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, in);
    if (isActive(in))
      add(in, tensor::ExtractSliceOp::create(b, loc, tensorTypeOf(in), g, offsets, sizes, strides));
    offsets[dim] = affine::makeComposedFoldedAffineApply(b, loc, sum, {offsets[dim], sizes[dim]});
  }
  return success();
}

LogicalResult Reverse::reversePad(tensor::PadOp op) {
  if (!activeCaptures(op, state.active).empty())
    return noGradient(op) << "a padding value that depends on a parameter";
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> strides(op.getSourceType().getRank(), b.getIndexAttr(1));
  add(op.getSource(),
      tensor::ExtractSliceOp::create(b, loc, op.getSourceType(), lookup(op), op.getMixedLowPad(),
                                     tensor::getMixedSizes(b, loc, op.getSource()), strides));
  return success();
}

// %s = tensor.extract %t[...] at function level.
LogicalResult Reverse::reverseElementRead(tensor::ExtractOp op) {
  Value source = op.getTensor();
  if (!isActive(source))
    return success();
  Location loc = op.getLoc();
  Value into = lookupOrZero(source);
  Value old = tensor::ExtractOp::create(b, loc, into, op.getIndices());
  Value sum = arith::AddFOp::create(b, loc, old, lookup(op));
  set(source, tensor::InsertOp::create(b, loc, sum, into, op.getIndices()));
  return success();
}

void Reverse::reverseFromElements(tensor::FromElementsOp op) {
  Location loc = op.getLoc();
  Value g = lookup(op);
  SmallVector<int64_t> strides = computeStrides(op.getType().getShape());
  for (auto [i, v] : llvm::enumerate(op.getElements())) {
    SmallVector<Value> at;
    for (int64_t index : delinearize(i, strides))
      at.push_back(scalarConstant(b, loc, b.getIndexType(), index));
    if (isActive(v))
      add(v, tensor::ExtractOp::create(b, loc, g, at));
  }
}

LogicalResult Reverse::reverseFunctionScalar(Operation *op) {
  ScalarAdjoints local;
  for (Value v : op->getResults())
    if (Value g = lookup(v))
      local[v] = g;
  if (failed(reverseScalarOp(b, op, local)))
    return failure();
  llvm::SmallSetVector<Value, 4> operands(op->operand_begin(), op->operand_end());
  for (Value v : operands)
    if (Value d = local.lookup(v))
      add(v, d);
  return success();
}

LogicalResult Reverse::reverseTensorOp(Operation *op) {
  Location loc = op->getLoc();
  Value g = lookup(op->getResult(0));
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<tensor::EmptyOp, arith::ConstantOp>([](Operation *) { return success(); })
      .Case([&](tensor::CastOp o) {
        add(o.getSource(), tensor::CastOp::create(b, loc, o.getSource().getType(), g));
        return success();
      })
      .Case([&](tensor::ExpandShapeOp o) {
        add(o.getSrc(), tensor::CollapseShapeOp::create(b, loc, o.getSrcType(), g,
                                                        o.getReassociationIndices()));
        return success();
      })
      .Case([&](tensor::CollapseShapeOp o) {
        add(o.getSrc(),
            tensor::ExpandShapeOp::create(b, loc, o.getSrcType(), g, o.getReassociationIndices(),
                                          tensor::getMixedSizes(b, loc, o.getSrc())));
        return success();
      })
      .Case([&](tensor::FromElementsOp o) {
        reverseFromElements(o);
        return success();
      })
      .Case([&](tensor::InsertOp o) {
        add(o.getScalar(), tensor::ExtractOp::create(b, loc, g, o.getIndices()));
        if (isActive(o.getDest())) {
          Value zero = scalarConstant(b, loc, o.getScalar().getType(), 0);
          add(o.getDest(), tensor::InsertOp::create(b, loc, zero, g, o.getIndices()));
        }
        return success();
      })
      .Case([&](tensor::ExtractSliceOp o) { return reverseExtractSlice(o); })
      .Case([&](tensor::InsertSliceOp o) { return reverseInsertSlice(o); })
      .Case([&](tensor::ConcatOp o) { return reverseConcat(o); })
      .Case([&](tensor::PadOp o) { return reversePad(o); })
      .Case([&](tensor::ExtractOp o) { return reverseElementRead(o); })
      .Default([&](Operation *o) -> LogicalResult {
        bool scalar = isa<FloatType>(o->getResult(0).getType()) &&
                      isa<arith::ArithDialect, math::MathDialect>(o->getDialect());
        if (scalar)
          return reverseFunctionScalar(o);
        return noGradient(o) << o->getName();
      });
}

} // namespace flow::training
