// Elementwise generics with NumPy's broadcasting.
#include "lib/Legalize/ONNX/BroadcastBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flow::onnx_rules;

std::optional<SmallVector<int64_t>>
flow::onnx_rules::broadcastShapes(ArrayRef<ArrayRef<int64_t>> shapes) {
  size_t rank = 0;
  for (ArrayRef<int64_t> shape : shapes)
    rank = std::max(rank, shape.size());
  SmallVector<int64_t> result(rank, 1);
  for (ArrayRef<int64_t> shape : shapes)
    for (auto [i, dim] : llvm::enumerate(shape)) {
      int64_t &to = result[rank - shape.size() + i];
      if (dim == to || dim == 1)
        continue;
      if (to != 1)
        return std::nullopt;
      to = dim;
    }
  return result;
}

/// Drops the dims that are broadcast; `kept` are the loops of the others.
static Value dropBroadcastDims(ImplicitLocOpBuilder &b, Value input, ArrayRef<int64_t> shape,
                               SmallVectorImpl<AffineExpr> &kept) {
  auto type = cast<RankedTensorType>(input.getType());
  size_t offset = shape.size() - type.getRank();
  SmallVector<int64_t> keptShape;
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices leading;
  for (auto [i, dim] : llvm::enumerate(type.getShape())) {
    bool drop = dim == 1 && shape[offset + i] != 1;
    if (!drop) {
      kept.push_back(b.getAffineDimExpr(offset + i));
      keptShape.push_back(dim);
      groups.emplace_back();
      std::swap(groups.back(), leading);
      groups.back().push_back(i);
    } else if (groups.empty()) {
      leading.push_back(i);
    } else {
      groups.back().push_back(i);
    }
  }
  if (keptShape.size() == static_cast<size_t>(type.getRank()))
    return input;
  return tensor::CollapseShapeOp::create(b, type.clone(keptShape), input, groups);
}

Value flow::onnx_rules::elementwise(ImplicitLocOpBuilder &b, ValueRange inputs, Type resultElement,
                                    Body body, std::optional<ArrayRef<int64_t>> wanted) {
  SmallVector<ArrayRef<int64_t>> shapes = llvm::map_to_vector(
      inputs, [](Value v) { return cast<RankedTensorType>(v.getType()).getShape(); });
  if (wanted)
    shapes.push_back(*wanted);
  SmallVector<int64_t> shape = *broadcastShapes(shapes);
  unsigned rank = shape.size();
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  for (Value input : inputs) {
    SmallVector<AffineExpr> kept;
    operands.push_back(dropBroadcastDims(b, input, shape, kept));
    maps.push_back(AffineMap::get(rank, 0, kept, b.getContext()));
  }
  maps.push_back(b.getMultiDimIdentityMap(rank));
  Value init = tensor::EmptyOp::create(b, shape, resultElement);
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  auto generic =
      linalg::GenericOp::create(b, init.getType(), operands, init, maps, iterators,
                                [&](OpBuilder &inner, Location loc, ValueRange scalars) {
                                  ImplicitLocOpBuilder ib(loc, inner);
                                  linalg::YieldOp::create(ib, body(ib, scalars.drop_back()));
                                });
  return generic.getResult(0);
}

Type flow::onnx_rules::wideType(Type element) {
  return isa<Float16Type, BFloat16Type>(element) ? Float32Type::get(element.getContext()) : element;
}

static Value castScalarFloat(ImplicitLocOpBuilder &b, Value value, Type to) {
  auto from = dyn_cast<FloatType>(value.getType()), wanted = dyn_cast<FloatType>(to);
  if (!from || !wanted || from == wanted)
    return value;
  if (from.getWidth() < wanted.getWidth())
    return arith::ExtFOp::create(b, to, value);
  if (from.getWidth() > wanted.getWidth())
    return arith::TruncFOp::create(b, to, value);
  return arith::TruncFOp::create(b, to,
                                 arith::ExtFOp::create(b, b.getF32Type(), value)); // f16 and bf16
}

Value flow::onnx_rules::elementwiseWide(ImplicitLocOpBuilder &b, ValueRange inputs,
                                        Type resultElement, Body body) {
  return elementwise(b, inputs, resultElement, [&](ImplicitLocOpBuilder &ib, ValueRange scalars) {
    SmallVector<Value> wide = llvm::map_to_vector(
        scalars, [&](Value v) { return castScalarFloat(ib, v, wideType(v.getType())); });
    return castScalarFloat(ib, body(ib, wide), resultElement);
  });
}

Value flow::onnx_rules::castFloats(ImplicitLocOpBuilder &b, Value value, Type element) {
  if (cast<RankedTensorType>(value.getType()).getElementType() == element)
    return value;
  return elementwise(b, value, element, [&](ImplicitLocOpBuilder &ib, ValueRange scalars) {
    return castScalarFloat(ib, scalars[0], element);
  });
}

Value flow::onnx_rules::broadcastTo(ImplicitLocOpBuilder &b, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  return elementwise(
      b, value, type.getElementType(),
      [](ImplicitLocOpBuilder &, ValueRange scalars) { return scalars[0]; }, shape);
}
