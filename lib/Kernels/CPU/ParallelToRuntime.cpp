// flow-parallel-to-runtime: calls of parallel bodies become flow_rt_parallel.
#include "lib/Kernels/CPU/Passes.h"
#include "mlir/IR/SymbolTable.h"

namespace flow {
#define GEN_PASS_DEF_PARALLELTORUNTIME
#include "lib/Kernels/CPU/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {

struct ParallelToRuntime : flow::impl::ParallelToRuntimeBase<ParallelToRuntime> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    SmallVector<LLVM::CallOp> calls;
    module.walk([&](LLVM::CallOp call) {
      if (auto callee = call.getCallee())
        if (auto f = symbols.lookup<LLVM::LLVMFuncOp>(*callee);
            f && f->hasAttr("flow.parallel_body"))
          calls.push_back(call);
    });
    if (calls.empty())
      return;
    OpBuilder b(&getContext());
    auto ptr = LLVM::LLVMPointerType::get(&getContext());
    auto none = LLVM::LLVMVoidType::get(&getContext());
    Type i64 = b.getI64Type();
    b.setInsertionPointToStart(module.getBody());
    auto runtime = symbols.lookup<LLVM::LLVMFuncOp>("flow_rt_parallel");
    if (!runtime)
      runtime = LLVM::LLVMFuncOp::create(b, module.getLoc(), "flow_rt_parallel",
                                         LLVM::LLVMFunctionType::get(none, {ptr, ptr, i64}));
    for (LLVM::CallOp call : calls) {
      Location loc = call.getLoc();
      auto body = symbols.lookup<LLVM::LLVMFuncOp>(*call.getCallee());
      body.setLinkage(LLVM::Linkage::Internal);
      SmallVector<Value> args(call.getArgOperands());
      // The entry unpacks the captures.
      b.setInsertionPoint(body);
      auto entry = LLVM::LLVMFuncOp::create(b, loc, (body.getName() + "_entry").str(),
                                            LLVM::LLVMFunctionType::get(none, {ptr, i64}),
                                            LLVM::Linkage::Internal);
      symbols.insert(entry);
      b.setInsertionPointToStart(entry.addEntryBlock(b));
      auto slot = [&](Value array, unsigned i) {
        return LLVM::GEPOp::create(b, loc, ptr, i64, array, ArrayRef<LLVM::GEPArg>{(int32_t)i});
      };
      SmallVector<Value> unpacked{entry.getArgument(1)};
      for (unsigned i = 1; i < args.size(); ++i)
        unpacked.push_back(
            LLVM::LoadOp::create(b, loc, args[i].getType(), slot(entry.getArgument(0), i - 1)));
      LLVM::CallOp::create(b, loc, body, unpacked);
      LLVM::ReturnOp::create(b, loc, ValueRange{});
      // The captures are alive until flow_rt_parallel returns.
      Operation *function = call->getParentOfType<LLVM::LLVMFuncOp>();
      b.setInsertionPointToStart(&function->getRegion(0).front());
      Value count = LLVM::ConstantOp::create(
          b, loc, i64, b.getI64IntegerAttr(std::max<int64_t>(1, args.size() - 1)));
      Value captured = LLVM::AllocaOp::create(b, loc, ptr, i64, count);
      b.setInsertionPoint(call);
      for (unsigned i = 1; i < args.size(); ++i)
        LLVM::StoreOp::create(b, loc, args[i], slot(captured, i - 1));
      Value function_pointer = LLVM::AddressOfOp::create(b, loc, ptr, entry.getName());
      LLVM::CallOp::create(b, loc, runtime, ValueRange{function_pointer, captured, args[0]});
      call.erase();
    }
  }
};

} // namespace
