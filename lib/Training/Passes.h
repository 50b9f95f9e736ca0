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

/// Registers the passes of this room and the pipeline `flow-train`.
void registerTrainingPipelines();

} // namespace flow::training
