// flow-plan-kernel-scratch: temporaries become views of one scratch argument.
#include "lib/Kernels/CPU/Kernel.h"
#include "lib/Kernels/CPU/Passes.h"
#include "lib/Kernels/Fusion/OpKinds.h"

namespace flow {
#define GEN_PASS_DEF_PLANSCRATCH
#include "lib/Kernels/CPU/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {

/// Memrefs of no elements have strides that bare pointers cannot carry; nothing
/// reads or writes them.
void flattenEmptyArguments(func::FuncOp kernel) {
  SmallVector<Type> types;
  for (BlockArgument arg : kernel.getArguments()) {
    auto type = dyn_cast<MemRefType>(arg.getType());
    if (type && type.getNumElements() == 0)
      arg.setType(MemRefType::get({0}, type.getElementType()));
    types.push_back(arg.getType());
  }
  kernel.setFunctionType(FunctionType::get(kernel.getContext(), types, {}));
}

struct PlanScratch : flow::impl::PlanScratchBase<PlanScratch> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(kKernelAttr) || kernel.isExternal())
      return;
    flattenEmptyArguments(kernel);
    SmallVector<memref::AllocOp> allocs;
    kernel.walk([&](memref::AllocOp alloc) {
      if (alloc->hasAttr(kScratchAttr) && !alloc.use_empty())
        allocs.push_back(alloc);
    });
    if (allocs.empty())
      return;
    int64_t bytes = 0;
    SmallVector<int64_t> offsets;
    for (memref::AllocOp alloc : allocs) {
      Type element = alloc.getType().getElementType();
      int64_t size = element.isIndex() ? 8 : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
      offsets.push_back(bytes);
      bytes += llvm::alignTo(alloc.getType().getNumElements() * size, 64);
    }
    OpBuilder b(&getContext());
    Location loc = kernel.getLoc();
    auto type = MemRefType::get({bytes}, b.getI8Type());
    if (failed(kernel.insertArgument(
            kernel.getNumArguments(), type,
            b.getDictionaryAttr(b.getNamedAttr("llvm.noalias", b.getUnitAttr())), loc)))
      return signalPassFailure();
    Value scratch = kernel.getArguments().back();
    for (auto [alloc, offset] : llvm::zip(allocs, offsets)) {
      b.setInsertionPoint(alloc);
      Value at = arith::ConstantIndexOp::create(b, loc, offset);
      Value view = memref::ViewOp::create(b, loc, alloc.getType(), scratch, at, ValueRange{});
      alloc.replaceAllUsesWith(view);
      alloc.erase();
    }
    kernel->setAttr("flow.scratch_bytes", b.getI64IntegerAttr(bytes));
  }
};

} // namespace
