// Reshapes as collapse_shape and expand_shape over the smallest groups of dims.
#include "lib/Legalize/ONNX/ReshapeBuilder.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flow::onnx_rules;

namespace {
/// Runs of dims of both shapes with equal products.
struct DimGroups {
  SmallVector<ReassociationIndices> from, to;
  SmallVector<int64_t> products;
};
} // namespace

static DimGroups groupDims(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  DimGroups groups;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    ReassociationIndices left{static_cast<int64_t>(i)}, right{static_cast<int64_t>(j)};
    int64_t a = from[i++], c = to[j++];
    while (a != c) {
      if (a < c) {
        a *= from[i];
        left.push_back(i++);
      } else {
        c *= to[j];
        right.push_back(j++);
      }
    }
    // Only dims of size 1 can be left over on one side.
    if (j == to.size())
      while (i < from.size())
        left.push_back(i++);
    if (i == from.size())
      while (j < to.size())
        right.push_back(j++);
    groups.from.push_back(left);
    groups.to.push_back(right);
    groups.products.push_back(a);
  }
  return groups;
}

Value flow::onnx_rules::reshape(ImplicitLocOpBuilder &b, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  RankedTensorType result = type.clone(shape);
  if (type.getNumElements() == 0)
    return tensor::EmptyOp::create(b, shape, type.getElementType());
  DimGroups groups = groupDims(type.getShape(), shape);
  RankedTensorType middle = type.clone(groups.products);
  if (groups.products.size() != static_cast<size_t>(type.getRank()))
    value = tensor::CollapseShapeOp::create(b, middle, value, groups.from);
  if (groups.products.size() != shape.size())
    value = tensor::ExpandShapeOp::create(b, result, value, groups.to);
  return value;
}

Value flow::onnx_rules::transpose(ImplicitLocOpBuilder &b, Value value,
                                  ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape =
      llvm::map_to_vector(permutation, [&](int64_t p) { return type.getDimSize(p); });
  Value init = tensor::EmptyOp::create(b, shape, type.getElementType());
  return linalg::TransposeOp::create(b, value, init, permutation).getResult()[0];
}
