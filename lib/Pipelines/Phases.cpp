#include "lib/Pipelines/Phases.h"
#include "dialects/Flow/Transforms/Passes.h"
#include "lib/Conversion/ActorToLLVM/Passes.h"
#include "lib/Conversion/CCLToActor/Passes.h"
#include "lib/Conversion/FlowToCCL/Passes.h"
#include "lib/Kernels/CPU/Passes.h"
#include "lib/Kernels/Fusion/Passes.h"
#include "lib/Scheduling/Passes.h"
#include "lib/Training/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace flow {

static void add(OpPassManager &pm, StringRef name, const Twine &options = "") {
  if (const PassInfo *info = PassInfo::lookup(name)) {
    (void)info->addToPipeline(pm, options.str(), [](const Twine &) { return failure(); });
    return;
  }
  if (const PassPipelineInfo *info = PassPipelineInfo::lookup(name))
    (void)info->addToPipeline(pm, options.str(), [](const Twine &) { return failure(); });
}

void buildImportPipeline(OpPassManager &pm, const ImportOptions &options) {
  SmallVector<std::string> dims(options.dims.begin(), options.dims.end());
  if (options.batch)
    dims.push_back("batch=" + std::to_string(options.batch.getValue()));
  if (!dims.empty())
    add(pm, "flow-set-dims", "dims=" + llvm::join(dims, ","));
}
void buildRefinePipeline(OpPassManager &pm) {
  pm.addPass(createInlinerPass());
  pm.addPass(createSymbolDCEPass());
  // Casts move through the ops until the shapes agree.
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createRefineResults());
}

void buildLegalizePipeline(OpPassManager &pm) {
  add(pm, "flow-infer-shapes");
  add(pm, "flow-legalize-onnx");
  pm.addPass(training::createGlobalsToArguments());
}
void buildConstrainPipeline(OpPassManager &pm, const DistributeOptions &options) {
  ApplyConstraintsOptions constraints;
  constraints.mesh = options.mesh;
  constraints.sbp = {options.sbp};
  constraints.stages = {options.stages};
  pm.addPass(createApplyConstraints(constraints));
}

void buildDistributePipeline(OpPassManager &pm) {
  pm.addPass(createDistribute());
  pm.addPass(createVerifyDistribution());
}

void buildLocalizePipeline(OpPassManager &pm) {
  pm.addPass(createLocalize());
  pm.addPass(createVerifyLocalization());
}

void buildKernelsPipeline(OpPassManager &pm) {
  // Nothing is split any more: gradients of windows may read instead of scatter.
  pm.addNestedPass<func::FuncOp>(training::createLowerScatterWindows());
  pm.addPass(createFormKernels());
}

void buildActorsPipeline(OpPassManager &pm) {
  pm.addPass(createCCLToActor());
}

void buildLowerKernelsPipeline(OpPassManager &pm, const CpuTarget &target) {
  LowerKernelsOptions options;
  options.vectorBits = target.vectorBits;
  options.registers = target.registers;
  options.chunks = target.chunks;
  pm.addPass(createLowerKernels(options));
}

void buildSchedulePipeline(OpPassManager &pm) {
  // Orders, waits and offsets; then a reader of its own checks the tables.
  pm.addPass(createSchedule());
  pm.addPass(createVerifySchedule());
}
void buildTablesPipeline(OpPassManager &pm) {
  pm.addPass(createActorToLLVM());
}

void registerPhasePipelines() {
  PassPipelineRegistration<ImportOptions>("flow-import-pipeline",
                                          "phase import: fixes dynamic dims", buildImportPipeline);
  PassPipelineRegistration<>("flow-refine-pipeline", "sizes of arguments reach the whole body",
                             buildRefinePipeline);
  PassPipelineRegistration<>("flow-legalize-pipeline", "phase legalize: flow.operator to linalg",
                             buildLegalizePipeline);
  PassPipelineRegistration<DistributeOptions>(
      "flow-distribute-pipeline", "phase distribute: constraints, SBP and boxing",
      [](OpPassManager &pm, const DistributeOptions &options) {
        buildConstrainPipeline(pm, options);
        buildDistributePipeline(pm);
      });
  PassPipelineRegistration<>("flow-localize-pipeline",
                             "phase localize: one function per rank class", buildLocalizePipeline);
  PassPipelineRegistration<>("flow-kernels-pipeline",
                             "phase kernels: compute outlined into kernels", buildKernelsPipeline);
  PassPipelineRegistration<>("flow-actors-pipeline", "class functions to actors",
                             buildActorsPipeline);
  PassPipelineRegistration<>("flow-schedule-pipeline", "phase schedule: orders, offsets, waits",
                             buildSchedulePipeline);
  PassPipelineRegistration<>("flow-tables-pipeline", "phase llvm: plans to constant tables",
                             buildTablesPipeline);
}

} // namespace flow
