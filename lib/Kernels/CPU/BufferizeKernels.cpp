// flow-bufferize-kernels: pure tensor kernels become kernel form.
#include "lib/Kernels/CPU/Kernel.h"
#include "lib/Kernels/CPU/Passes.h"
#include "lib/Kernels/Fusion/OpKinds.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferUtils.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace flow {
#define GEN_PASS_DEF_BUFFERIZEKERNELS
#include "lib/Kernels/CPU/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {

/// Four generics, each with an init of its own (upstream's decomposition shares one).
struct DecomposeSoftmax : OpRewritePattern<linalg::SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::SoftmaxOp op, PatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value x = op.getInput();
    auto type = dyn_cast<RankedTensorType>(x.getType());
    if (!type)
      return failure();
    unsigned rank = type.getRank(), dim = op.getDimension();
    Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
    AffineMap all = b.getMultiDimIdentityMap(rank), row = all.dropResult(dim);
    SmallVector<int64_t> rowShape(type.getShape());
    rowShape.erase(rowShape.begin() + dim);
    SmallVector<utils::IteratorType> map(rank, utils::IteratorType::parallel), reduce = map;
    reduce[dim] = utils::IteratorType::reduction;
    auto sum = [&](Value v, double init, bool maximum) -> Value {
      Value empty = tensor::EmptyOp::create(b, loc, rowShape, element);
      Value c = arith::ConstantOp::create(b, loc, b.getFloatAttr(element, init));
      Value fill = linalg::FillOp::create(b, loc, c, empty).getResult(0);
      return linalg::GenericOp::create(
                 b, loc, fill.getType(), v, fill, ArrayRef<AffineMap>{all, row}, reduce,
                 [&](OpBuilder &b, Location l, ValueRange a) {
                   // A NaN comes back through the exponential below.
                   Value r = maximum ? Value(arith::MaxNumFOp::create(b, l, a[0], a[1]))
                                     : Value(arith::AddFOp::create(b, l, a[0], a[1]));
                   linalg::YieldOp::create(b, l, r);
                 })
          .getResult(0);
    };
    auto each = [&](Value v, Value r, bool exponential) -> Value {
      Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), element);
      return linalg::GenericOp::create(
                 b, loc, empty.getType(), ValueRange{v, r}, empty,
                 ArrayRef<AffineMap>{all, row, all}, map,
                 [&](OpBuilder &b, Location l, ValueRange a) {
                   Value y = exponential ? Value(math::ExpOp::create(
                                               b, l, arith::SubFOp::create(b, l, a[0], a[1])))
                                         : Value(arith::DivFOp::create(b, l, a[0], a[1]));
                   linalg::YieldOp::create(b, l, y);
                 })
          .getResult(0);
    };
    Value maximum = sum(x, -std::numeric_limits<double>::infinity(), true);
    Value e = each(x, maximum, true);
    b.replaceOp(op, each(e, sum(e, 0, false), false));
    return success();
  }
};

struct GeneralizeNamed : OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(linalg::LinalgOp op, PatternRewriter &b) const override {
    if (isa<linalg::GenericOp, linalg::FillOp>(op.getOperation()))
      return failure();
    return linalg::generalizeNamedOp(b, op);
  }
};

/// A fill whose contents no reader uses costs a pass over memory: a map's
/// destination only says the shape.
struct DropDeadInit : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &b) const override {
    bool changed = false;
    for (OpOperand &init : op.getDpsInitsMutable()) {
      if (op.payloadUsesValueFromOperand(&init) || init.get().getDefiningOp<tensor::EmptyOp>() ||
          op.getNumReductionLoops() || !op.getMatchingIndexingMap(&init).isPermutation())
        continue;
      auto type = cast<RankedTensorType>(init.get().getType());
      Value empty = tensor::EmptyOp::create(b, op.getLoc(), type.getShape(), type.getElementType());
      b.modifyOpInPlace(op, [&] { init.set(empty); });
      changed = true;
    }
    return success(changed);
  }
};

LogicalResult normalize(func::FuncOp kernel) {
  RewritePatternSet patterns(kernel.getContext());
  patterns.add<DecomposeSoftmax, GeneralizeNamed, DropDeadInit>(kernel.getContext());
  linalg::populateElementwiseToLinalgConversionPatterns(patterns);
  // Elementwise conversion is a conversion pattern set in disguise: legal ops are left alone.
  return applyPatternsGreedily(kernel, std::move(patterns));
}

/// A tensor<1xf32>-like scalar op of arith on tensors that no pattern took.
bool staticTensors(func::FuncOp kernel, Operation *&bad) {
  bad = nullptr;
  kernel.walk([&](Operation *op) {
    for (Type t : op->getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(t); tensor && !tensor.hasStaticShape())
        bad = op;
  });
  return !bad;
}

LogicalResult toKernelForm(func::FuncOp kernel) {
  Operation *bad;
  if (!staticTensors(kernel, bad))
    return bad->emitOpError("has a tensor of dynamic shape in a kernel; shapes must be static");
  auto memrefOf = [](Type t) -> Type {
    if (auto tensor = dyn_cast<RankedTensorType>(t))
      return MemRefType::get(tensor.getShape(), tensor.getElementType());
    return t;
  };
  FunctionType old = kernel.getFunctionType();
  SmallVector<Type> types;
  for (Type t : old.getInputs())
    types.push_back(memrefOf(t));
  for (Type t : old.getResults())
    types.push_back(memrefOf(t));
  OpBuilder b(kernel.getContext());
  Location loc = kernel.getLoc();
  SmallVector<Attribute> inplace;
  for (unsigned r = 0; r < old.getNumResults(); ++r)
    inplace.push_back(kernel.getResultAttr(r, kInplaceAttr));
  unsigned inputs = old.getNumInputs();
  auto ret = cast<func::ReturnOp>(kernel.front().getTerminator());
  kernel.setAllResultAttrs(ArrayRef<DictionaryAttr>(
      SmallVector<DictionaryAttr>(old.getNumResults(), b.getDictionaryAttr({}))));
  // Arguments change type under their readers.
  Block &entry = kernel.front();
  b.setInsertionPointToStart(&entry);
  for (unsigned i = 0; i < inputs; ++i) {
    BlockArgument arg = entry.getArgument(i);
    auto tensor = dyn_cast<RankedTensorType>(arg.getType());
    if (!tensor)
      continue;
    arg.setType(types[i]);
    auto read = bufferization::ToTensorOp::create(b, loc, tensor, arg, /*restrict=*/true);
    arg.replaceAllUsesExcept(read, read);
  }
  for (unsigned r = 0; r < old.getNumResults(); ++r)
    entry.addArgument(types[inputs + r], loc);
  kernel.setFunctionType(b.getFunctionType(types, {}));
  kernel->removeAttr(kernel.getArgAttrsAttrName());
  kernel->removeAttr(kernel.getResAttrsAttrName());
  llvm::SmallDenseSet<unsigned> paired;
  for (auto [r, attr] : llvm::enumerate(inplace))
    if (attr) {
      paired.insert(cast<IntegerAttr>(attr).getInt());
      paired.insert(inputs + r);
      kernel.setArgAttr(inputs + r, kInplaceAttr, attr);
    }
  for (unsigned i = 0; i < types.size(); ++i)
    if (isa<MemRefType>(types[i]) && !paired.contains(i))
      kernel.setArgAttr(i, "llvm.noalias", b.getUnitAttr());
  b.setInsertionPoint(ret);
  for (auto [r, v] : llvm::enumerate(SmallVector<Value>(ret.getOperands()))) {
    auto write =
        bufferization::MaterializeInDestinationOp::create(b, loc, v, entry.getArgument(inputs + r));
    write.setRestrict(true);
    write.setWritable(true);
  }
  func::ReturnOp::create(b, loc);
  ret.erase();
  // Scalars that are read from arguments.
  for (auto extract : llvm::make_early_inc_range(entry.getOps<tensor::ExtractOp>())) {
    auto read = extract.getTensor().getDefiningOp<bufferization::ToTensorOp>();
    if (!read)
      continue;
    b.setInsertionPoint(extract);
    Value v = memref::LoadOp::create(b, extract.getLoc(), read.getBuffer(), extract.getIndices());
    extract.replaceAllUsesWith(v);
    extract.erase();
  }
  return success();
}

/// Constants with different elements lie in the object file.
LogicalResult constantsToGlobals(func::FuncOp kernel, SymbolTableCollection &symbols) {
  LogicalResult ok = success();
  SmallVector<arith::ConstantOp> constants;
  kernel.walk([&](arith::ConstantOp constant) {
    auto type = dyn_cast<RankedTensorType>(constant.getType());
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (type && type.getNumElements() && !(dense && dense.isSplat()))
      constants.push_back(constant);
  });
  for (arith::ConstantOp constant : constants) {
    FailureOr<memref::GlobalOp> global =
        bufferization::getGlobalFor(constant, symbols, /*alignment=*/64);
    if (failed(global))
      return failure();
    OpBuilder b(constant);
    auto buffer =
        memref::GetGlobalOp::create(b, constant.getLoc(), global->getType(), global->getName());
    Value tensor =
        bufferization::ToTensorOp::create(b, constant.getLoc(), constant.getType(), buffer,
                                          /*restrict=*/true);
    constant.replaceAllUsesWith(tensor);
    constant.erase();
  }
  return ok;
}

struct BufferizeKernels : flow::impl::BufferizeKernelsBase<BufferizeKernels> {
  using BufferizeKernelsBase::BufferizeKernelsBase;
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::SetVector<Operation *> callers;
    getOperation().walk([&](func::CallOp call) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (callee && callee->hasAttr(kKernelAttr))
        callers.insert(call->getParentOfType<func::FuncOp>());
    });
    for (Operation *caller : callers) {
      if (!dropCallers) {
        caller->emitOpError(
            "still calls kernels on tensors: schedule it first, or give drop-callers");
        return signalPassFailure();
      }
      caller->erase();
    }
    SymbolTableCollection tables;
    for (auto kernel : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (!kernel->hasAttr(kKernelAttr) || kernel.isExternal() ||
          llvm::none_of(kernel.getResultTypes(), llvm::IsaPred<TensorType>))
        continue;
      if (failed(normalize(kernel)) || failed(constantsToGlobals(kernel, tables)) ||
          failed(toKernelForm(kernel)))
        return signalPassFailure();
    }
  }
};

} // namespace
