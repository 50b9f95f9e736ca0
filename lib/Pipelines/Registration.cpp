// Every dialect, pass and pipeline of flow and of the parts of MLIR it uses.
#include "lib/Pipelines/Registration.h"
#include "dialects/Actor/IR/ActorOps.h"
#include "dialects/CCL/IR/CCLOps.h"
#include "dialects/Flow/IR/FlowDialect.h"
#include "dialects/Flow/Rules/Passes.h"
#include "dialects/Flow/Transforms/Passes.h"
#include "lib/Conversion/ActorToLLVM/Passes.h"
#include "lib/Conversion/CCLToActor/Passes.h"
#include "lib/Conversion/FlowToCCL/Passes.h"
#include "lib/Kernels/CPU/Passes.h"
#include "lib/Kernels/Fusion/Passes.h"
#include "lib/Legalize/ONNX/Passes.h"
#include "lib/Pipelines/Phases.h"
#include "lib/Scheduling/Passes.h"
#include "lib/Training/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"

void flow::registerDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<flow::FlowDialect, flow::ccl::CCLDialect>();
  registry.insert<flow::actor::ActorDialect>();
}

void flow::registerPasses() {
  mlir::registerAllPasses();
  registerPhasePipelines();
  registerFlowRulesPasses();
  flow::registerFlowCCLToActorPasses();
  flow::registerFlowActorToLLVMPasses();
  training::registerTrainingPipelines();
  registerFlowTransformsPasses();
  registerFlowToCCLPasses();
  registerFlowKernelFusionPasses();
  registerFlowCpuKernelPasses();
  registerCpuKernelPipelines();
  flow::registerFlowSchedulingPasses();
  registerFlowLegalizeONNXPasses();
}
