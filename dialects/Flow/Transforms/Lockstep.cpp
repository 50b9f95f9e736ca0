// All ranks of a placed function as one function on whole tensors.
#include "dialects/Flow/Transforms/DistExpansion.h"
#include "dialects/Flow/Transforms/LocalizeCompute.h"
#include "dialects/Flow/Transforms/Passes.h"
#include "dialects/Flow/Transforms/Redistribute.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace flow;

namespace flow {
#define GEN_PASS_DEF_LOCKSTEP
#include "dialects/Flow/Transforms/Passes.h.inc"
} // namespace flow

namespace {
class LockstepExpansion : public DistExpansion {
public:
  LockstepExpansion(OpBuilder &b, MeshAttr mesh) : DistExpansion(b) {
    for (ArrayRef<int64_t> coordinates : allCoordinates(mesh))
      ranks.push_back(RankBox::single(coordinates));
  }

  LogicalResult run(func::FuncOp from, func::FuncOp to) {
    for (auto [old, whole] : llvm::zip(from.getArguments(), to.getArguments())) {
      if (auto type = dyn_cast<DistType>(old.getType()))
        map(old, cutIntoTestParts(b, old.getLoc(), whole, type));
      else
        map(old, whole);
    }
    return rebuild(from.getBody().front());
  }

private:
  SmallVector<Type> expandType(DistType type) override {
    return llvm::map_to_vector(
        ranks, [&](const RankBox &rank) -> Type { return localTypeOf(type, rank); });
  }

  LogicalResult rebuildCompute(ComputeOp op) override {
    FailureOr<RegionSignature> signature = inferRegionSignature(op);
    if (failed(signature))
      return failure();
    if (!signature->mesh) // no result, nothing to do
      return success();
    SmallVector<SmallVector<Value>> results(op.getNumResults());
    for (auto [r, rank] : llvm::enumerate(ranks)) {
      SmallVector<Value> inputs;
      for (Value input : op.getInputs())
        inputs.push_back(lookup(input)[isa<DistType>(input.getType()) ? r : 0]);
      SmallVector<OpFoldResult> coordinates = getAsIndexOpFoldResult(b.getContext(), rank.lo);
      auto locals = localizeCompute(b, op, *signature, rank, inputs, coordinates);
      if (failed(locals))
        return failure();
      for (auto [all, local] : llvm::zip(results, *locals))
        all.push_back(local);
    }
    for (auto [result, all] : llvm::zip(op.getOutputs(), results))
      map(result, all);
    return success();
  }

  LogicalResult rebuildBoxing(BoxingOp op) override {
    Value whole = combineParts(b, op.getLoc(), lookup(op.getInput()), op.getInput().getType());
    map(op.getResult(), cutIntoParts(b, op.getLoc(), whole, op.getResult().getType()));
    return success();
  }

  LogicalResult rebuildReturn(func::ReturnOp op) override {
    SmallVector<Value> results;
    for (Value value : op.getOperands()) {
      auto type = dyn_cast<DistType>(value.getType());
      results.push_back(type ? combineParts(b, op.getLoc(), lookup(value), type)
                             : lookup(value)[0]);
    }
    func::ReturnOp::create(b, op.getLoc(), results);
    return success();
  }

  SmallVector<RankBox> ranks;
};

struct Lockstep : flow::impl::LockstepBase<Lockstep> {
  void runOnOperation() override {
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      FailureOr<MeshAttr> mesh = meshOfFunction(function);
      if (failed(mesh))
        return signalPassFailure();
      if (*mesh && !function.isExternal() && failed(run(function, *mesh)))
        return signalPassFailure();
    }
  }

  LogicalResult run(func::FuncOp function, MeshAttr mesh) {
    if (!function.getBody().hasOneBlock())
      return function.emitError("expected structured control flow in a placed function");
    auto globals = [](TypeRange types) {
      return llvm::map_to_vector(types, [](Type type) -> Type {
        auto dist = dyn_cast<DistType>(type);
        return dist ? dist.getGlobalType() : type;
      });
    };
    OpBuilder b(function);
    auto all = cast<func::FuncOp>(function->cloneWithoutRegions());
    b.insert(all);
    all.setFunctionType(b.getFunctionType(globals(function.getArgumentTypes()),
                                          globals(function.getResultTypes())));
    b.setInsertionPointToStart(all.addEntryBlock());
    if (failed(LockstepExpansion(b, mesh).run(function, all)))
      return failure();
    function.erase();
    return success();
  }
};
} // namespace
