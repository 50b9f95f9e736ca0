// Short builders of linalg ops that the training passes write themselves.
#include "lib/Training/GenericBuilders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using utils::IteratorType;

namespace flow::training {

Value scalarConstant(OpBuilder &b, Location loc, Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, static_cast<int64_t>(value)));
}

Value filled(OpBuilder &b, Location loc, RankedTensorType type, double value, Value like) {
  SmallVector<OpFoldResult> sizes = like ? tensor::getMixedSizes(b, loc, like)
                                         : getAsIndexOpFoldResult(b.getContext(), type.getShape());
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  Value scalar = scalarConstant(b, loc, type.getElementType(), value);
  return linalg::FillOp::create(b, loc, scalar, empty).getResult(0);
}

Value elementwise(OpBuilder &b, Location loc, ValueRange ins, Type element, ScalarBody body) {
  RankedTensorType type = tensorTypeOf(ins[0]);
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  AffineMap scalar = AffineMap::get(type.getRank(), 0, b.getContext());
  SmallVector<AffineMap> maps;
  for (Value v : ins)
    maps.push_back(tensorTypeOf(v).getRank() == type.getRank() ? identity : scalar);
  maps.push_back(identity);
  Value init = tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, ins[0]), element);
  SmallVector<IteratorType> iterators(type.getRank(), IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, init.getType(), ins, init, maps, iterators,
                                   [&](OpBuilder &nb, Location l, ValueRange args) {
                                     linalg::YieldOp::create(nb, l, body(nb, l, args.drop_back()));
                                   })
      .getResult(0);
}

Value addTensors(OpBuilder &b, Location loc, Value x, Value y) {
  return elementwise(b, loc, {x, y}, tensorTypeOf(x).getElementType(),
                     [](OpBuilder &nb, Location l, ValueRange a) -> Value {
                       return arith::AddFOp::create(nb, l, a[0], a[1]);
                     });
}

Type accumulatorType(Type element) {
  return element.getIntOrFloatBitWidth() < 32 ? Float32Type::get(element.getContext()) : element;
}

Value convertFloat(OpBuilder &b, Location loc, Value v, Type to) {
  if (v.getType() == to)
    return v;
  if (v.getType().getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
    return b.createOrFold<arith::ExtFOp>(loc, to, v);
  return b.createOrFold<arith::TruncFOp>(loc, to, v);
}

} // namespace flow::training
