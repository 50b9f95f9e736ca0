// Form II to form III.
#include "lib/Training/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace flow::training {

void buildTrainingPipeline(OpPassManager &pm, const TrainingOptions &options) {
  // The program names its initial values by its arguments.
  pm.addPass(createGlobalsToArguments());
  // @main becomes @step, which ends in the loss, and @eval.
  AddLossOptions loss;
  loss.loss = options.loss;
  loss.labelType = options.labelType;
  loss.batch = options.batch;
  loss.microBatches = options.microBatches;
  pm.addPass(createAddLoss(loss));
  // Dead values would be differentiated, equal ones twice.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // Gradients as results; nothing is fused before distribution.
  pm.addPass(createDifferentiate());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // Sums over micro-batches, then the update behind the loop.
  LoopMicroBatchesOptions loop;
  loop.microBatches = options.microBatches;
  pm.addPass(createLoopMicroBatches(loop));
  AddOptimizerOptions optimizer;
  optimizer.optimizer = options.optimizer;
  pm.addPass(createAddOptimizer(optimizer));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createVerifyStep());
}

void buildGradientPipeline(OpPassManager &pm, const GradientOptions &options) {
  bool ofLoss = options.of == "loss";
  if (ofLoss) {
    AddLossOptions loss;
    loss.loss = options.loss;
    loss.keepOutputs = true;
    pm.addPass(createAddLoss(loss));
  }
  // Dead values would be differentiated, equal ones twice.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  DifferentiateOptions differentiate;
  differentiate.function = ofLoss ? "step" : "main";
  differentiate.of.push_back(options.of);
  differentiate.wrt.assign(options.wrt.begin(), options.wrt.end());
  pm.addPass(createDifferentiate(differentiate));
  pm.addPass(createExportGradients());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void registerTrainingPipelines() {
  registerTrainingPasses();
  PassPipelineRegistration<TrainingOptions>(
      "flow-train", "makes the training step and the evaluation of a legalized @main",
      buildTrainingPipeline);
  PassPipelineRegistration<GradientOptions>("flow-gradients",
                                            "adds gradients to the outputs of a legalized @main",
                                            buildGradientPipeline);
}

} // namespace flow::training
