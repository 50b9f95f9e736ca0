// Reductions of tensors along axes.
#include "lib/Legalize/ONNX/ReductionBuilder.h"
#include "lib/Legalize/ONNX/BroadcastBuilder.h"
#include "lib/Legalize/ONNX/ReshapeBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flow::onnx_rules;

TypedAttr flow::onnx_rules::neutralElement(Combiner combiner, Type element, bool isUnsigned) {
  Builder b(element.getContext());
  if (auto type = dyn_cast<FloatType>(element)) {
    if (combiner == Combiner::Sum || combiner == Combiner::Product)
      return b.getFloatAttr(type, combiner == Combiner::Sum ? 0.0 : 1.0);
    return b.getFloatAttr(type,
                          APFloat::getInf(type.getFloatSemantics(), combiner == Combiner::Max));
  }
  unsigned width = element.getIntOrFloatBitWidth();
  isUnsigned |= width == 1;
  switch (combiner) {
  case Combiner::Sum:
    return b.getIntegerAttr(element, 0);
  case Combiner::Product:
    return b.getIntegerAttr(element, APInt(width, 1));
  case Combiner::Max:
    return b.getIntegerAttr(element,
                            isUnsigned ? APInt::getZero(width) : APInt::getSignedMinValue(width));
  case Combiner::Min:
    return b.getIntegerAttr(element, isUnsigned ? APInt::getMaxValue(width)
                                                : APInt::getSignedMaxValue(width));
  }
  return {};
}

template <typename FloatOp, typename SignedOp, typename UnsignedOp>
static Value pick(ImplicitLocOpBuilder &b, Value x, Value y, bool isUnsigned) {
  if (isa<FloatType>(x.getType()))
    return FloatOp::create(b, x, y);
  if (isUnsigned || x.getType().isInteger(1))
    return UnsignedOp::create(b, x, y);
  return SignedOp::create(b, x, y);
}

Value flow::onnx_rules::combine(ImplicitLocOpBuilder &b, Combiner combiner, Value x, Value y,
                                bool isUnsigned) {
  switch (combiner) {
  case Combiner::Sum:
    return pick<arith::AddFOp, arith::AddIOp, arith::AddIOp>(b, x, y, isUnsigned);
  case Combiner::Product:
    return pick<arith::MulFOp, arith::MulIOp, arith::MulIOp>(b, x, y, isUnsigned);
  case Combiner::Max:
    return pick<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(b, x, y, isUnsigned);
  case Combiner::Min:
    return pick<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(b, x, y, isUnsigned);
  }
  return {};
}

Value flow::onnx_rules::filled(ImplicitLocOpBuilder &b, ArrayRef<int64_t> shape, TypedAttr value) {
  Value init = tensor::EmptyOp::create(b, shape, value.getType());
  Value scalar = arith::ConstantOp::create(b, value);
  return linalg::FillOp::create(b, scalar, init).getResult(0);
}

Value flow::onnx_rules::reduce(ImplicitLocOpBuilder &b, Value input, ArrayRef<int64_t> axes,
                               bool keepDims, Combiner combiner, bool isUnsigned) {
  auto type = cast<RankedTensorType>(input.getType());
  Type element = type.getElementType();
  bool adds = combiner == Combiner::Sum || combiner == Combiner::Product;
  Type accumulator = adds ? wideType(element) : element;
  unsigned rank = type.getRank();
  SmallVector<int64_t> left, kept;
  SmallVector<AffineExpr> leftDims;
  SmallVector<utils::IteratorType> iterators;
  for (unsigned d = 0; d < rank; ++d) {
    bool reduced = llvm::is_contained(axes, static_cast<int64_t>(d));
    iterators.push_back(reduced ? utils::IteratorType::reduction : utils::IteratorType::parallel);
    kept.push_back(reduced ? 1 : type.getDimSize(d));
    if (reduced)
      continue;
    left.push_back(type.getDimSize(d));
    leftDims.push_back(b.getAffineDimExpr(d));
  }
  Value result = input;
  if (left.size() != rank) {
    Value init = filled(b, left, neutralElement(combiner, accumulator, isUnsigned));
    SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(rank),
                                AffineMap::get(rank, 0, leftDims, b.getContext())};
    result =
        linalg::GenericOp::create(b, init.getType(), input, init, maps, iterators,
                                  [&](OpBuilder &inner, Location loc, ValueRange scalars) {
                                    ImplicitLocOpBuilder ib(loc, inner);
                                    Value value = scalars[0];
                                    if (accumulator != element)
                                      value = arith::ExtFOp::create(ib, accumulator, value);
                                    linalg::YieldOp::create(
                                        ib, combine(ib, combiner, scalars[1], value, isUnsigned));
                                  })
            .getResult(0);
    result = castFloats(b, result, element);
  }
  return keepDims ? reshape(b, result, kept) : result;
}

Value flow::onnx_rules::maximumAsShift(ImplicitLocOpBuilder &b, Value input,
                                       ArrayRef<int64_t> axes) {
  SmallVector<int64_t> kept(cast<RankedTensorType>(input.getType()).getShape());
  for (int64_t axis : axes)
    kept[axis] = 1;
  Value max = reduce(b, input, axes, /*keepDims=*/false, Combiner::Max);
  if (auto generic = max.getDefiningOp<linalg::GenericOp>(); generic && max != input)
    generic->setAttr("flow.stop_gradient", b.getUnitAttr());
  return reshape(b, max, kept);
}
