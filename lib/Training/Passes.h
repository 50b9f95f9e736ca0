// The passes and the pipeline of training.
#pragma once

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"
#include <string>

namespace flow::training {

#define GEN_PASS_DECL
#include "lib/Training/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Training/Passes.h.inc"

/// What `--flow-train` makes of a legalized `@main`.
struct TrainingOptions : mlir::PassPipelineOptions<TrainingOptions> {
  Option<std::string> loss{*this, "loss",
                           llvm::cl::desc("softmax_cross_entropy, mse or output:NAME"),
                           llvm::cl::init("softmax_cross_entropy")};
  Option<std::string> labelType{*this, "label-type",
                                llvm::cl::desc("element type of class labels: int64 or int32"),
                                llvm::cl::init("int64")};
  Option<int64_t> batch{*this, "batch",
                        llvm::cl::desc("expected number of samples of a step; 0: any"),
                        llvm::cl::init(0)};
  Option<int64_t> microBatches{
      *this, "micro-batches",
      llvm::cl::desc("micro-batches of a step; the model's batch is the size of one"),
      llvm::cl::init(1)};
  Option<std::string> optimizer{*this, "optimizer", llvm::cl::desc("sgd,lr=R[,momentum=M]"),
                                llvm::cl::init("sgd,lr=0.01")};
};

/// Form II to form III: `@main` becomes `@step` and `@eval`.
void buildTrainingPipeline(mlir::OpPassManager &pm, const TrainingOptions &options);

/// What `--flow-gradients` adds to the outputs of a legalized `@main`.
struct GradientOptions : mlir::PassPipelineOptions<GradientOptions> {
  Option<std::string> of{*this, "of", llvm::cl::desc("an output, or `loss`")};
  ListOption<std::string> wrt{
      *this, "wrt",
      llvm::cl::desc("inputs and initializers; none: every parameter that reaches it")};
  Option<std::string> loss{*this, "loss",
                           llvm::cl::desc("softmax_cross_entropy, mse or output:NAME; for of=loss"),
                           llvm::cl::init("softmax_cross_entropy")};
};

/// Form II to form II, with one output `grad_NAME` more per name in `wrt`.
void buildGradientPipeline(mlir::OpPassManager &pm, const GradientOptions &options);

/// Registers the passes of this room and the pipelines `flow-train` and `flow-gradients`.
void registerTrainingPipelines();

} // namespace flow::training
