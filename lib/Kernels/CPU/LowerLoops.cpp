// flow-lower-loops: the general path. Values that cannot be computed point by
// point (sums, windows, pads, inserts) are written to memory one after another,
// each by one loop nest; all else is computed where it is read.
#include "lib/Kernels/CPU/LoopNest.h"
#include "lib/Kernels/CPU/Passes.h"
#include "lib/Kernels/CPU/Stages.h"
#include "lib/Kernels/Fusion/OpKinds.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace flow {
#define GEN_PASS_DEF_LOWERLOOPS
#include "lib/Kernels/CPU/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {

class LoopLowering {
public:
  explicit LoopLowering(Kernel &kernel) : kernel(kernel), b(kernel.builder) {}
  LogicalResult run();

private:
  Kernel &kernel;
  OpBuilder &b;
  llvm::DenseMap<Value, Place> wanted; ///< place that a value is to be written to
  bool inplace = false;                ///< an output may lie over an input

  bool needsMemory(Operation *op);
  bool worthKeeping(linalg::GenericOp op);
  Place placeFor(Value v);
  void assignPlaces();
  LogicalResult write(Operation *op);
  LogicalResult writeGeneric(linalg::GenericOp op);
  LogicalResult writeInit(Value init, const Place &to);
  LogicalResult copy(Value from, const Place &to, RankedTensorType shape);
  LogicalResult writePad(tensor::PadOp op);
  LogicalResult writeInsert(tensor::InsertSliceOp op);
  LogicalResult writeConcat(tensor::ConcatOp op);
  LogicalResult writeElements(tensor::FromElementsOp op);
  LogicalResult writeGenerate(tensor::GenerateOp op);
  LogicalResult scalar(Operation *op);
  llvm::DenseSet<Value> lookedUp;
  LogicalResult writeOutputs();
};

Place subview(Place place, ArrayRef<int64_t> offsets, ArrayRef<int64_t> steps = {}) {
  for (auto [d, offset] : llvm::enumerate(offsets))
    place.offset += offset * place.strides[d];
  for (auto [d, step] : llvm::enumerate(steps))
    place.strides[d] *= step;
  return place;
}

bool isMaterialized(Operation *op) {
  return isa<tensor::PadOp, tensor::InsertSliceOp, tensor::ConcatOp, tensor::GenerateOp>(op);
}

/// Is recomputing the value at every read more than a few cheap instructions,
/// for a reader that reads it several times?
bool LoopLowering::worthKeeping(linalg::GenericOp op) {
  unsigned work = 0;
  for (Operation &inner : op.getBody()->without_terminator())
    work += isa<math::MathDialect>(inner.getDialect()) ? 16 : isa<arith::ConstantOp>(inner) ? 0 : 1;
  unsigned readers = 0;
  bool reread = false;
  for (OpOperand &use : op->getResult(0).getUses()) {
    ++readers;
    auto reader = dyn_cast<linalg::LinalgOp>(use.getOwner());
    if (!reader)
      continue;
    AffineMap map = reader.getMatchingIndexingMap(&use);
    for (unsigned d = 0; d < reader.getNumLoops(); ++d)
      reread |= !map.isFunctionOfDim(d) && reader.getStaticLoopRanges()[d] > 1;
    reread |= !map.isProjectedPermutation();
  }
  return (reread && work > 2) || (readers > 1 && work > 12) || (reread && op.getNumDpsInputs() > 2);
}

bool LoopLowering::needsMemory(Operation *op) {
  if (isMaterialized(op))
    return true;
  // What is read at places that only running shows: tables, moving slices.
  for (Value v : op->getResults()) {
    // The place of a slice may depend on a lookup that is not made yet.
    if (!isa<RankedTensorType>(v.getType()) || isa<tensor::EmptyOp, tensor::ExtractSliceOp>(op) ||
        kernel.placeOf(v))
      continue;
    for (Operation *user : v.getUsers()) {
      if (isa<tensor::ExtractOp>(user) && user->getBlock() != op->getBlock())
        return true;
      if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user))
        if (llvm::any_of(slice.getStaticOffsets(), ShapedType::isDynamic))
          return true;
    }
  }
  if (auto from = dyn_cast<tensor::FromElementsOp>(op))
    return from.getElements().size() != 1;
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    if (generic.getNumReductionLoops())
      return true;
    for (OpOperand &init : generic.getDpsInitsMutable())
      if (!generic.getMatchingIndexingMap(&init).isPermutation())
        return true;
    return !inplace && worthKeeping(generic);
  }
  return false;
}

/// Views of one value, for results that leave through a reshape.
Place LoopLowering::placeFor(Value v) {
  auto it = wanted.find(v);
  if (it != wanted.end())
    return it->second;
  auto type = cast<RankedTensorType>(v.getType());
  return wanted[v] = kernel.allocate(type.getShape(), type.getElementType());
}

/// Results go to their destinations, and what is updated step by step goes to
/// where the last step wants it.
void LoopLowering::assignPlaces() {
  for (auto output : kernel.outputs) {
    Value v = output.getSource();
    Place place = kernel.destinationOf(output);
    // Through reshapes, memory stays as it is.
    while (v.getDefiningOp<tensor::ExpandShapeOp>() || v.getDefiningOp<tensor::CollapseShapeOp>() ||
           v.getDefiningOp<tensor::CastOp>())
      v = v.getDefiningOp()->getOperand(0);
    place.strides = contiguousStrides(cast<RankedTensorType>(v.getType()).getShape());
    wanted.try_emplace(v, place);
  }
  for (Operation &op : llvm::reverse(kernel.function.front())) {
    Value from, to;
    if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
      from = insert.getDest();
      to = insert.getResult();
    } else if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (generic.getNumDpsInits() != 1)
        continue;
      from = generic.getDpsInits()[0];
      to = generic->getResult(0);
      if (from.getType() != to.getType())
        continue;
    } else {
      continue;
    }
    Operation *def = from.getDefiningOp();
    if (!def || !from.hasOneUse() || wanted.contains(from) || !needsMemory(&op) ||
        !needsMemory(def))
      continue;
    // An output's place holds nothing else before its last write: safe, for
    // outputs alias no input of a kernel that needs memory.
    wanted[from] = placeFor(to);
  }
}

LogicalResult LoopLowering::copy(Value from, const Place &to, RankedTensorType shape) {
  FormulaBuilder formulas(kernel, shape.getRank());
  AffineMap id = AffineMap::getMultiDimIdentityMap(shape.getRank(), b.getContext());
  const Formula *value = formulas.build(from, id);
  if (!value)
    return emitError(from.getLoc(), "value cannot be computed in this kernel");
  NestOutput out;
  out.access = formulas.access(to, id);
  out.value = value;
  // Already there.
  if (value->kind == Formula::Memory && value->place == out.access->place &&
      value->index == out.access->index)
    return success();
  LoopNest nest(kernel, shape.getShape(), SmallVector<bool>(shape.getRank(), false), out);
  nest.emit();
  return success();
}

LogicalResult LoopLowering::writeInit(Value init, const Place &to) {
  if (init.getDefiningOp<tensor::EmptyOp>())
    return success();
  return copy(init, to, cast<RankedTensorType>(init.getType()));
}

LogicalResult LoopLowering::writeGeneric(linalg::GenericOp op) {
  auto lowered = lowerContractionStage(kernel, op, placeFor(op->getResult(0)), [&] {
    return writeInit(op.getDpsInits()[0], placeFor(op->getResult(0)));
  });
  if (failed(lowered))
    return failure();
  if (*lowered)
    return success();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  unsigned loops = extents.size();
  AffineMap id = AffineMap::getMultiDimIdentityMap(loops, b.getContext());
  FormulaBuilder formulas(kernel, loops);
  SmallVector<AffineExpr> coordinates(id.getResults());

  SmallVector<bool> sums(loops, true);
  for (OpOperand &init : op.getDpsInitsMutable())
    for (unsigned d = 0; d < loops; ++d)
      if (op.getMatchingIndexingMap(&init).isFunctionOfDim(d))
        sums[d] = false;
  // Does each point of the outer loops own one element, and together all?
  auto owns = [&](OpOperand &init) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (!map.isProjectedPermutation())
      return false;
    for (unsigned d = 0; d < loops; ++d)
      if (!sums[d] && !map.isFunctionOfDim(d))
        return false;
    return true;
  };
  bool anySum = llvm::is_contained(sums, true);
  SmallVector<const Formula *> operands;
  for (OpOperand *in : op.getDpsInputOperands()) {
    if (!op.payloadUsesValueFromOperand(in)) {
      operands.push_back(nullptr);
      continue;
    }
    const Formula *f = formulas.build(in->get(), op.getMatchingIndexingMap(in));
    if (!f)
      return op.emitOpError("reads a value that cannot be computed in this kernel");
    operands.push_back(f);
  }
  for (Value captured : tablesOf(op))
    if (!kernel.placeOf(captured))
      return op.emitOpError("looks up a table that is not in memory");
  SmallVector<NestOutput> outputs;
  bool scatter = false;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    Value result = op.getTiedOpResult(&init);
    AffineMap map = op.getMatchingIndexingMap(&init);
    Place place = placeFor(result);
    bool used = op.payloadUsesValueFromOperand(&init);
    NestOutput out;
    out.access = formulas.access(place, map);
    bool covers = owns(init);
    if (covers && (used || anySum)) {
      out.init = formulas.build(init.get(), map);
      if (!out.init)
        return op.emitOpError("starts from a value that cannot be computed in this kernel");
    } else if (!covers) {
      scatter = true;
      if (failed(writeInit(init.get(), place)))
        return failure();
      if (used || anySum)
        out.init = out.access;
    }
    if (out.init) {
      out.accumulator = result;
      formulas.know(result);
    }
    outputs.push_back(out);
  }
  for (auto [i, out] : llvm::enumerate(outputs)) {
    Value result = op->getResult(i);
    operands.push_back(out.accumulator
                           ? formulas.build(result, AffineMap::get(loops, 0, b.getContext()))
                           : nullptr);
  }
  bool associative = true;
  for (auto [i, out] : llvm::enumerate(outputs)) {
    Type type = cast<RankedTensorType>(op->getResult(i).getType()).getElementType();
    out.value = formulas.body(op.getBody(), i, operands, coordinates, type);
    if (outputs.size() == 1)
      out.combiner = reductionCombiner(op);
    associative &= !out.accumulator || combiningKind(out.combiner).has_value();
  }
  LoopNest nest(kernel, extents, sums, outputs);
  if (!associative)
    nest.keepOrder();
  if (scatter)
    for (unsigned d = 0; d < loops; ++d) {
      // A loop may be cut if each of its iterations writes a slice of its own.
      bool pure = true;
      for (OpOperand &init : op.getDpsInitsMutable()) {
        AffineMap map = op.getMatchingIndexingMap(&init);
        pure &= llvm::is_contained(map.getResults(), b.getAffineDimExpr(d));
      }
      if (!pure)
        nest.dontSplit(d);
    }
  nest.emit();
  return success();
}

LogicalResult LoopLowering::writePad(tensor::PadOp op) {
  auto type = op.getResultType();
  auto source = op.getSourceType();
  Place place = placeFor(op.getResult());
  SmallVector<int64_t> low(op.getStaticLow());
  if (llvm::any_of(low, ShapedType::isDynamic) ||
      llvm::any_of(op.getStaticHigh(), ShapedType::isDynamic))
    return op.emitOpError("has an amount of padding that is not constant");
  Value padding = op.getConstantPaddingValue();
  FormulaBuilder formulas(kernel, type.getRank());
  AffineMap id = AffineMap::getMultiDimIdentityMap(type.getRank(), b.getContext());
  NestOutput out;
  out.access = formulas.access(place, id);
  if (padding) {
    // The constant may stand inside of the region.
    TypedAttr value;
    if (matchPattern(padding, m_Constant(&value)))
      padding = arith::ConstantOp::create(b, op.getLoc(), value);
    out.value = formulas.build(padding, id);
  } else {
    return op.emitOpError("pads with a value that is not constant");
  }
  LoopNest(kernel, type.getShape(), SmallVector<bool>(type.getRank(), false), out).emit();
  // Negative amounts cut.
  SmallVector<int64_t> shape(source.getShape()), from(shape.size(), 0), to(shape.size(), 0);
  for (unsigned d = 0; d < shape.size(); ++d) {
    int64_t high = op.getStaticHigh()[d];
    from[d] = std::max<int64_t>(0, -low[d]);
    to[d] = std::max<int64_t>(0, low[d]);
    shape[d] += std::min<int64_t>(0, low[d]) + std::min<int64_t>(0, high);
  }
  FormulaBuilder inner(kernel, type.getRank());
  SmallVector<AffineExpr> at;
  for (unsigned d = 0; d < shape.size(); ++d)
    at.push_back(b.getAffineDimExpr(d) + from[d]);
  NestOutput body;
  body.access = inner.access(subview(place, to), id);
  body.value = inner.build(op.getSource(), AffineMap::get(shape.size(), 0, at, b.getContext()));
  if (!body.value)
    return op.emitOpError("pads a value that cannot be computed in this kernel");
  LoopNest(kernel, shape, SmallVector<bool>(shape.size(), false), body).emit();
  return success();
}

LogicalResult LoopLowering::writeInsert(tensor::InsertSliceOp op) {
  Place place = placeFor(op.getResult());
  if (failed(writeInit(op.getDest(), place)))
    return failure();
  Place to = place;
  SmallVector<int64_t> strides;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  for (auto [d, offset, stride] : llvm::enumerate(op.getMixedOffsets(), op.getMixedStrides())) {
    auto step = getConstantIntValue(stride);
    if (!step)
      return op.emitOpError("has a stride that is not constant");
    if (auto fixed = getConstantIntValue(offset)) {
      to.offset += *fixed * place.strides[d];
    } else {
      Value scaled =
          affine::makeComposedAffineApply(b, op.getLoc(), b.getAffineDimExpr(0) * place.strides[d],
                                          {OpFoldResult(cast<Value>(offset))});
      to.dynamicOffset =
          to.dynamicOffset ? Value(arith::AddIOp::create(b, op.getLoc(), to.dynamicOffset, scaled))
                           : scaled;
    }
    if (!dropped.test(d))
      strides.push_back(place.strides[d] * *step);
  }
  to.strides = strides;
  return copy(op.getSource(), to, op.getSourceType());
}

LogicalResult LoopLowering::writeConcat(tensor::ConcatOp op) {
  Place place = placeFor(op.getResult());
  int64_t at = 0, dim = op.getDim();
  for (Value part : op.getInputs()) {
    auto type = cast<RankedTensorType>(part.getType());
    SmallVector<int64_t> offsets(type.getRank(), 0);
    offsets[dim] = at;
    if (failed(copy(part, subview(place, offsets), type)))
      return failure();
    at += type.getDimSize(dim);
  }
  return success();
}

LogicalResult LoopLowering::writeElements(tensor::FromElementsOp op) {
  Place place = placeFor(op.getResult());
  for (auto [i, v] : llvm::enumerate(op.getElements()))
    memref::StoreOp::create(
        b, op.getLoc(), v, place.base,
        Value(arith::ConstantIndexOp::create(b, op.getLoc(), place.offset + i)));
  return success();
}

LogicalResult LoopLowering::writeGenerate(tensor::GenerateOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  Place place = placeFor(op.getResult());
  unsigned rank = type.getRank();
  FormulaBuilder formulas(kernel, rank);
  AffineMap id = AffineMap::getMultiDimIdentityMap(rank, b.getContext());
  const Formula *access = formulas.access(place, id);
  Evaluator e(b, op.getLoc(), kernel);
  std::function<LogicalResult(unsigned)> nest = [&](unsigned d) -> LogicalResult {
    if (d < rank) {
      auto l = scf::ForOp::create(b, op.getLoc(), e.constant(0), e.constant(type.getDimSize(d)),
                                  e.constant(1));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(l.getBody());
      e.iv.push_back(l.getInductionVar());
      return nest(d + 1);
    }
    IRMapping map;
    map.map(op.getBody().getArguments(), ArrayRef<Value>(e.iv));
    for (Operation &inner : op.getBody().front().without_terminator()) {
      if (isa<tensor::ExtractOp>(inner))
        return op.emitOpError("looks up a table: not supported in tensor.generate");
      b.clone(inner, map);
    }
    e.store(map.lookupOrDefault(op.getBody().front().getTerminator()->getOperand(0)), access);
    return success();
  };
  return nest(0);
}

LogicalResult LoopLowering::write(Operation *op) {
  auto done = [&](LogicalResult ok) {
    if (succeeded(ok))
      for (Value v : op->getResults())
        kernel.setPlace(v, placeFor(v));
    return ok;
  };
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return done(writeGeneric(generic));
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return done(writePad(pad));
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return done(writeInsert(insert));
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return done(writeConcat(concat));
  if (auto elements = dyn_cast<tensor::FromElementsOp>(op))
    return done(writeElements(elements));
  if (auto generate = dyn_cast<tensor::GenerateOp>(op))
    return done(writeGenerate(generate));
  if (op->getNumResults() == 1 && isa<RankedTensorType>(op->getResult(0).getType())) {
    Value v = op->getResult(0);
    return done(copy(v, placeFor(v), cast<RankedTensorType>(v.getType())));
  }
  return op->emitOpError("has no lowering to CPU loops");
}

/// Outputs that are still to be computed, all of one shape in one nest: every
/// operand of a point is loaded before any of its results is stored, which is
/// what in-place pairs need.
LogicalResult LoopLowering::writeOutputs() {
  SmallVector<bufferization::MaterializeInDestinationOp> left(kernel.outputs);
  while (!left.empty()) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(left.front().getSource().getType()).getShape();
    unsigned rank = shape.size();
    FormulaBuilder formulas(kernel, rank);
    AffineMap id = AffineMap::getMultiDimIdentityMap(rank, b.getContext());
    SmallVector<NestOutput> outputs;
    SmallVector<bufferization::MaterializeInDestinationOp> rest;
    for (auto output : left) {
      if (cast<RankedTensorType>(output.getSource().getType()).getShape() != shape) {
        rest.push_back(output);
        continue;
      }
      NestOutput out;
      out.access = formulas.access(kernel.destinationOf(output), id);
      out.value = formulas.build(output.getSource(), id);
      if (!out.value)
        return emitError(output.getSource().getLoc(), "value cannot be computed in this kernel");
      if (out.value->kind == Formula::Memory && out.value->place == out.access->place &&
          out.value->index == out.access->index)
        continue;
      if (output.getSource().getDefiningOp<tensor::EmptyOp>())
        continue;
      outputs.push_back(out);
    }
    if (!outputs.empty())
      LoopNest(kernel, shape, SmallVector<bool>(rank, false), outputs).emit();
    left = rest;
  }
  return success();
}

/// Lookups at the top level, and scalars and slices that depend on one, move
/// behind the code that writes what they read.
LogicalResult LoopLowering::scalar(Operation *op) {
  bool late = llvm::any_of(op->getOperands(), [&](Value v) { return lookedUp.contains(v); });
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    unsigned rank = extract.getIndices().size();
    FormulaBuilder formulas(kernel, rank);
    const Formula *f = formulas.build(extract.getTensor(),
                                      AffineMap::getMultiDimIdentityMap(rank, b.getContext()));
    if (!f)
      return op->emitOpError("reads a value that cannot be computed in this kernel");
    Evaluator e(b, op->getLoc(), kernel);
    e.iv.assign(extract.getIndices().begin(), extract.getIndices().end());
    Value v = e.eval(f);
    lookedUp.insert(v);
    extract.replaceAllUsesWith(v);
    return success();
  }
  if (!late)
    return success();
  bool tensors = llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>);
  if (!tensors || isa<tensor::ExtractSliceOp>(op))
    op->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
  if (!tensors)
    lookedUp.insert_range(op->getResults());
  return success();
}

LogicalResult LoopLowering::run() {
  for (unsigned i = 0; i < kernel.function.getNumArguments(); ++i)
    inplace |= kernel.function.getArgAttr(i, kInplaceAttr) != nullptr;
  SmallVector<Operation *> ops;
  for (Operation &op : kernel.function.front())
    ops.push_back(&op);
  bool anySink = llvm::any_of(ops, [&](Operation *op) { return needsMemory(op); });
  if (anySink)
    assignPlaces();
  for (Operation *op : ops) {
    if (op->use_empty() || op->hasTrait<OpTrait::IsTerminator>())
      continue;
    if (failed(scalar(op)))
      return failure();
    if (!isa<linalg::LinalgDialect, tensor::TensorDialect, arith::ArithDialect>(op->getDialect()) ||
        !isa<RankedTensorType>(op->getResult(0).getType()))
      continue;
    bool sink = needsMemory(op);
    // A pointwise result that others read, too, is written once.
    if (anySink && !sink && isa<linalg::GenericOp>(op) && wanted.contains(op->getResult(0)) &&
        !op->getResult(0).hasOneUse())
      sink = true;
    if (sink && failed(write(op)))
      return failure();
  }
  return writeOutputs();
}

struct LowerLoops : flow::impl::LowerLoopsBase<LowerLoops> {
  using LowerLoopsBase::LowerLoopsBase;
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function->hasAttr(kKernelAttr) || function.isExternal())
      return;
    Kernel kernel(function, CpuTarget{vectorBits, registers, chunks});
    if (kernel.outputs.empty())
      return;
    if (failed(LoopLowering(kernel).run()))
      return signalPassFailure();
    kernel.eraseTensorOps();
  }
};

} // namespace
