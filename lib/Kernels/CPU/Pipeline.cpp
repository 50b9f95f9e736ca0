// The phase from kernels on tensors to the LLVM dialect.
#include "lib/Kernels/CPU/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace flow;

/// Needs vectors, loops and memrefs in functions; leaves the LLVM dialect.
static void addLLVMLowering(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // Narrow floats are computed in f32.
  pm.addNestedPass<func::FuncOp>(math::createMathExtendToSupportedTypes());
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16", "f16"};
  emulate.targetTypeStr = "f32";
  pm.addNestedPass<func::FuncOp>(arith::createArithEmulateUnsupportedFloats(emulate));
  pm.addNestedPass<func::FuncOp>(createLowerVectors());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addNestedPass<func::FuncOp>(arith::createArithExpandOpsPass(expand));
  pm.addPass(createConvertVectorToSCFPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions functions;
  functions.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(functions));
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void flow::buildCpuKernelPipeline(OpPassManager &pm, const CpuTarget &target) {
  // Pure tensor kernels to kernel form.
  pm.addPass(createBufferizeKernels());
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  // Kernel form to loops and vectors; the first path that fits takes a kernel.
  pm.addNestedPass<func::FuncOp>(createLowerContractions(
      LowerContractionsOptions{target.vectorBits, target.registers, target.chunks}));
  pm.addNestedPass<func::FuncOp>(
      createLowerRows(LowerRowsOptions{target.vectorBits, target.registers, target.chunks}));
  pm.addNestedPass<func::FuncOp>(
      createLowerLoops(LowerLoopsOptions{target.vectorBits, target.registers, target.chunks}));
  // Temporaries to the scratch argument, parallel loops to functions.
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createPlanScratch());
  pm.addPass(createOutlineParallel());
  // LLVM dialect under the runtime's calling convention.
  addLLVMLowering(pm);
  pm.addPass(createParallelToRuntime());
  pm.addPass(createKernelInterface(KernelInterfaceOptions{target.vectorBits}));
}

namespace {
struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  Option<int64_t> vectorBits{*this, "vector-bits", llvm::cl::desc("width of a vector register"),
                             llvm::cl::init(256)};
  Option<int64_t> registers{*this, "registers", llvm::cl::desc("number of vector registers"),
                            llvm::cl::init(16)};
  Option<int64_t> chunks{*this, "chunks", llvm::cl::desc("pieces of a large kernel"),
                         llvm::cl::init(8)};
};
} // namespace

void flow::registerCpuKernelPipelines() {
  PassPipelineRegistration<PipelineOptions>(
      "flow-cpu-kernels", "kernel functions to the LLVM dialect",
      [](OpPassManager &pm, const PipelineOptions &o) {
        buildCpuKernelPipeline(pm, CpuTarget{o.vectorBits, o.registers, o.chunks});
      });
}
