#include "lib/Pipelines/Phases.h"
#include "dialects/Flow/Transforms/Passes.h"
#include "lib/Conversion/ActorToLLVM/Passes.h"
#include "lib/Conversion/CCLToActor/Passes.h"
#include "lib/Conversion/FlowToCCL/Passes.h"
#include "lib/Kernels/CPU/Passes.h"
#include "lib/Kernels/Fusion/Passes.h"
#include "lib/Legalize/ONNX/Passes.h"
#include "lib/Scheduling/Passes.h"
#include "lib/Training/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace flow {

void buildImportPipeline(OpPassManager &pm, const ImportOptions &options) {
  SetDimsOptions dims;
  dims.dims.assign(options.dims.begin(), options.dims.end());
  if (options.batch)
    dims.dims.push_back("batch=" + std::to_string(options.batch.getValue()));
  pm.addPass(createSetDims(dims));
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
  pm.addPass(createInferShapes());
  pm.addPass(createLegalizeOnnx());
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

void buildSchedulePipeline(OpPassManager &pm, const ScheduleOptions &options) {
  // Orders, waits and offsets; then a reader of its own checks the tables.
  pm.addPass(createSchedule(options));
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
                             [](OpPassManager &pm) { buildSchedulePipeline(pm, {}); });
  PassPipelineRegistration<>("flow-tables-pipeline", "phase llvm: plans to constant tables",
                             buildTablesPipeline);
}

} // namespace flow
