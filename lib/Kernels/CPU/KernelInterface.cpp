// flow-kernel-interface: entries with the runtime's calling convention.
#include "lib/Kernels/CPU/Passes.h"
#include "lib/Kernels/Fusion/OpKinds.h"
#include "mlir/IR/SymbolTable.h"

namespace flow {
#define GEN_PASS_DEF_KERNELINTERFACE
#include "lib/Kernels/CPU/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {

struct KernelInterface : flow::impl::KernelInterfaceBase<KernelInterface> {
  using KernelInterfaceBase::KernelInterfaceBase;
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    OpBuilder b(&getContext());
    auto ptr = LLVM::LLVMPointerType::get(&getContext());
    auto none = LLVM::LLVMVoidType::get(&getContext());
    Type i64 = b.getI64Type();
    for (auto function : llvm::to_vector(getOperation().getOps<LLVM::LLVMFuncOp>())) {
      if (function.isExternal())
        continue;
      // LLVM takes 256 bits where the machine prefers so; the tiles are made for the full width.
      if (function->hasAttr(kKernelAttr) || function->hasAttr("flow.parallel_body"))
        function.setPreferVectorWidth(std::to_string(vectorBits));
      if (!function->hasAttr(kKernelAttr))
        continue;
      std::string name = function.getName().str();
      Location loc = function.getLoc();
      LLVM::Linkage linkage = LLVM::Linkage::External;
      if (failed(symbols.rename(function, name + ".body")))
        return signalPassFailure();
      function.setLinkage(LLVM::Linkage::Internal);
      function.setVisibility(SymbolTable::Visibility::Private);
      function->removeAttr(kKernelAttr);
      b.setInsertionPointAfter(function);
      auto entry = LLVM::LLVMFuncOp::create(b, loc, name,
                                            LLVM::LLVMFunctionType::get(none, {ptr, ptr}), linkage);
      entry->setAttr(kKernelAttr, b.getUnitAttr());
      if (Attribute scratch = function->removeAttr("flow.scratch_bytes"))
        entry->setAttr("flow.scratch_bytes", scratch);
      symbols.insert(entry);
      b.setInsertionPointToStart(entry.addEntryBlock(b));
      SmallVector<Value> args;
      unsigned coord = 0, buffer = 0;
      for (Type type : function.getFunctionType().getParams()) {
        bool isBuffer = isa<LLVM::LLVMPointerType>(type);
        Value from = entry.getArgument(isBuffer ? 0 : 1);
        int32_t at = isBuffer ? buffer++ : coord++;
        Value slot = LLVM::GEPOp::create(b, loc, ptr, isBuffer ? Type(ptr) : i64, from,
                                         ArrayRef<LLVM::GEPArg>{at});
        args.push_back(LLVM::LoadOp::create(b, loc, type, slot));
      }
      LLVM::CallOp::create(b, loc, function, args);
      LLVM::ReturnOp::create(b, loc, ValueRange{});
    }
  }
};

} // namespace
