#include "lib/Kernels/CPU/Kernel.h"
#include "lib/Kernels/Fusion/OpKinds.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace flow;

SmallVector<int64_t> flow::contiguousStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int d = (int)shape.size() - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * std::max<int64_t>(shape[d + 1], 1);
  return strides;
}

Kernel::Kernel(func::FuncOp function, const CpuTarget &target)
    : function(function), target(target), builder(function.front().getTerminator()) {
  for (auto output : function.getOps<bufferization::MaterializeInDestinationOp>())
    outputs.push_back(output);
}

/// A one-dimensional view made right after `memref`.
Place Kernel::flat(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  OpBuilder b(builder);
  if (auto arg = dyn_cast<BlockArgument>(memref))
    b.setInsertionPointToStart(arg.getOwner());
  else
    b.setInsertionPointAfter(memref.getDefiningOp());
  Place place;
  auto flatType = MemRefType::get({type.getNumElements()}, type.getElementType());
  place.base = type.getRank() == 1
                   ? memref
                   : memref::ReinterpretCastOp::create(b, function.getLoc(), flatType, memref,
                                                       /*offset=*/int64_t(0),
                                                       ArrayRef<int64_t>{type.getNumElements()},
                                                       ArrayRef<int64_t>{1})
                         .getResult();
  place.strides = contiguousStrides(type.getShape());
  return place;
}

Place Kernel::destinationOf(bufferization::MaterializeInDestinationOp output) {
  Value dest = output.getDest();
  auto it = places.find(dest);
  if (it != places.end())
    return it->second;
  return places[dest] = flat(dest);
}

Place Kernel::allocate(ArrayRef<int64_t> shape, Type elementType) {
  OpBuilder b = OpBuilder::atBlockBegin(&function.front());
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  auto alloc = memref::AllocOp::create(b, function.getLoc(),
                                       MemRefType::get({std::max<int64_t>(count, 1)}, elementType),
                                       b.getI64IntegerAttr(64));
  alloc->setAttr(kScratchAttr, b.getUnitAttr());
  Place place;
  place.base = alloc;
  place.strides = contiguousStrides(shape);
  return place;
}

/// Strides of a view with other groups of dims, if each source dim or group stays evenly spaced.
static std::optional<SmallVector<int64_t>> expandStrides(ArrayRef<int64_t> strides,
                                                         ArrayRef<int64_t> shape,
                                                         ArrayRef<ReassociationIndices> groups) {
  SmallVector<int64_t> result(shape.size(), 1);
  for (auto [d, group] : llvm::enumerate(groups)) {
    int64_t stride = strides[d];
    for (int64_t i : llvm::reverse(group)) {
      result[i] = stride;
      stride *= std::max<int64_t>(shape[i], 1);
    }
  }
  return result;
}
static std::optional<SmallVector<int64_t>> collapseStrides(ArrayRef<int64_t> strides,
                                                           ArrayRef<int64_t> shape,
                                                           ArrayRef<ReassociationIndices> groups) {
  SmallVector<int64_t> result;
  for (const ReassociationIndices &group : groups) {
    int64_t inner = 1, next = -1;
    for (int64_t i : llvm::reverse(group)) {
      if (shape[i] == 1)
        continue;
      if (next >= 0 && strides[i] != next)
        return std::nullopt;
      if (next < 0)
        inner = strides[i];
      next = strides[i] * shape[i];
    }
    result.push_back(inner);
  }
  return result;
}

std::optional<Place> Kernel::placeOf(Value tensor) {
  auto it = places.find(tensor);
  if (it != places.end())
    return it->second;
  Operation *def = tensor.getDefiningOp();
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!def || !type)
    return std::nullopt;
  if (auto read = dyn_cast<bufferization::ToTensorOp>(def))
    return places[tensor] = flat(read.getBuffer());
  if (auto cast = dyn_cast<tensor::CastOp>(def))
    return placeOf(cast.getSource());
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(def)) {
    auto place = placeOf(expand.getSrc());
    if (!place)
      return std::nullopt;
    if (expand.getSrcType().getRank() == 0)
      place->strides.assign(type.getRank(), 1);
    else
      place->strides =
          *expandStrides(place->strides, type.getShape(), expand.getReassociationIndices());
    return places[tensor] = *place;
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(def)) {
    auto place = placeOf(collapse.getSrc());
    if (!place)
      return std::nullopt;
    auto strides = collapseStrides(place->strides, collapse.getSrcType().getShape(),
                                   collapse.getReassociationIndices());
    if (!strides)
      return std::nullopt;
    place->strides = *strides;
    return places[tensor] = *place;
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(def)) {
    auto place = placeOf(slice.getSource());
    if (!place)
      return std::nullopt;
    OpBuilder b(slice);
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    SmallVector<int64_t> strides;
    Value dynamic = place->dynamicOffset;
    for (auto [d, offset, stride] :
         llvm::enumerate(slice.getMixedOffsets(), slice.getMixedStrides())) {
      auto step = getConstantIntValue(stride);
      if (!step)
        return std::nullopt;
      if (auto fixed = getConstantIntValue(offset)) {
        place->offset += *fixed * place->strides[d];
      } else {
        Value scaled = affine::makeComposedAffineApply(b, slice.getLoc(),
                                                       b.getAffineDimExpr(0) * place->strides[d],
                                                       {OpFoldResult(cast<Value>(offset))});
        dynamic =
            dynamic ? Value(arith::AddIOp::create(b, slice.getLoc(), dynamic, scaled)) : scaled;
      }
      if (!dropped.test(d))
        strides.push_back(place->strides[d] * *step);
    }
    place->dynamicOffset = dynamic;
    place->strides = strides;
    return places[tensor] = *place;
  }
  return std::nullopt;
}

void Kernel::eraseTensorOps() {
  for (auto output : outputs)
    output.erase();
  outputs.clear();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.front()))) {
    bool pure =
        isa<linalg::LinalgDialect, tensor::TensorDialect, bufferization::BufferizationDialect>(
            op.getDialect()) ||
        isMemoryEffectFree(&op);
    if (op.use_empty() && pure && !op.hasTrait<OpTrait::IsTerminator>())
      op.erase();
  }
  places.clear();
}

void Kernel::parallel(int64_t count, llvm::function_ref<void(Value)> emit) {
  Location loc = function.getLoc();
  if (count <= 1) {
    emit(arith::ConstantIndexOp::create(builder, loc, 0));
    return;
  }
  auto forall =
      scf::ForallOp::create(builder, loc, ArrayRef<OpFoldResult>{builder.getIndexAttr(count)},
                            ValueRange{}, std::nullopt);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(forall.getTerminator());
  emit(forall.getInductionVars()[0]);
}
