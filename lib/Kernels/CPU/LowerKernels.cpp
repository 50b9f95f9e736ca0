// flow-lower-kernels: the CPU pipeline on the kernels of a module, whatever else
// it holds.
#include "lib/Kernels/CPU/Passes.h"
#include "lib/Kernels/Fusion/OpKinds.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"

namespace flow {
#define GEN_PASS_DEF_LOWERKERNELS
#include "lib/Kernels/CPU/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {

struct LowerKernels : flow::impl::LowerKernelsBase<LowerKernels> {
  using LowerKernelsBase::LowerKernelsBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    OpPassManager pm(ModuleOp::getOperationName(), OpPassManager::Nesting::Implicit);
    buildCpuKernelPipeline(pm, CpuTarget{});
    pm.getDependentDialects(registry);
    registry.insert<LLVM::LLVMDialect>();
  }

  /// Conversions to LLVM take every function of a module, so kernels get one of their own.
  void runOnOperation() override {
    ModuleOp module = getOperation();
    OwningOpRef<ModuleOp> kernels = ModuleOp::create(module.getLoc());
    for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (kernel->hasAttr(kKernelAttr))
        kernel->moveBefore(kernels->getBody(), kernels->getBody()->end());
    if (kernels->getBody()->empty())
      return;
    PassManager pm(&getContext());
    buildCpuKernelPipeline(pm, CpuTarget{vectorBits, registers, chunks});
    if (failed(pm.run(*kernels)))
      return signalPassFailure();
    SymbolTable inner(*kernels), outer(module);
    for (Operation &op : llvm::make_early_inc_range(*kernels->getBody())) {
      StringAttr name = SymbolTable::getSymbolName(&op);
      if (Operation *taken = outer.lookup(name)) {
        // A declaration that both need, such as the runtime's.
        auto mine = dyn_cast<LLVM::LLVMFuncOp>(op), theirs = dyn_cast<LLVM::LLVMFuncOp>(taken);
        if (mine && theirs && mine.isExternal() &&
            mine.getFunctionType() == theirs.getFunctionType())
          continue;
        if (failed(inner.renameToUnique(&op, {&outer})))
          return signalPassFailure();
      }
    }
    for (Operation &op : llvm::make_early_inc_range(*kernels->getBody()))
      if (!outer.lookup(SymbolTable::getSymbolName(&op)))
        op.moveBefore(module.getBody(), module.getBody()->end());
  }
};

} // namespace
