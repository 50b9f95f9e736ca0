// The phases of the walk as pipelines: each ends in its verify pass, each is
// known to flow-opt by name.
#pragma once
#include "lib/Kernels/CPU/CpuTarget.h"
#include "mlir/Pass/PassOptions.h"
#include <cstdint>
#include <string>

namespace mlir {
class OpPassManager;
}

namespace flow {

struct ScheduleOptions;

/// `--flow-import-pipeline`: fixes dynamic dims; what came from a file is complete.
struct ImportOptions : mlir::PassPipelineOptions<ImportOptions> {
  ListOption<std::string> dims{*this, "dim", llvm::cl::desc("NAME=N: the size of a dynamic dim")};
  Option<int64_t> batch{*this, "batch", llvm::cl::init(0),
                        llvm::cl::desc("first dim of every input; 0: as in the model")};
};
void buildImportPipeline(mlir::OpPassManager &pm, const ImportOptions &options);

/// `--flow-refine-pipeline`: sizes of arguments reach the whole body of a model in MLIR.
void buildRefinePipeline(mlir::OpPassManager &pm);

/// `--flow-legalize-pipeline`: flow.operator to linalg on static tensors, weights to arguments.
void buildLegalizePipeline(mlir::OpPassManager &pm);

/// What the user asks of a distribution, as `--flow-apply-constraints` takes it.
struct DistributeOptions : mlir::PassPipelineOptions<DistributeOptions> {
  Option<std::string> mesh{*this, "mesh", llvm::cl::init(""), llvm::cl::desc("AXIS=SIZE,...")};
  Option<std::string> sbp{*this, "sbp", llvm::cl::desc("NAME=[B,S(0)];...")};
  Option<std::string> stages{*this, "stage", llvm::cl::desc("PATTERN=K;...")};
};
/// The requests alone: what fails here is the user's flag.
void buildConstrainPipeline(mlir::OpPassManager &pm, const DistributeOptions &options);
/// `--flow-distribute-pipeline`: requests to decisions; all movement in flow.boxing.
void buildDistributePipeline(mlir::OpPassManager &pm);

/// `--flow-localize-pipeline`: one function per rank class, with ccl ops.
void buildLocalizePipeline(mlir::OpPassManager &pm);

/// `--flow-kernels-pipeline`: class functions are calls of kernels and ccl ops.
void buildKernelsPipeline(mlir::OpPassManager &pm);

/// `--flow-actors-pipeline`: class functions to one actor.plan.
void buildActorsPipeline(mlir::OpPassManager &pm);

/// Kernel functions to the LLVM dialect, for a processor; nothing else changes.
void buildLowerKernelsPipeline(mlir::OpPassManager &pm, const CpuTarget &target);

/// `--flow-schedule-pipeline`: total orders, offsets and waits.
void buildSchedulePipeline(mlir::OpPassManager &pm, const ScheduleOptions &options);

/// `--flow-tables-pipeline`: the plans become constant tables in the LLVM dialect.
void buildTablesPipeline(mlir::OpPassManager &pm);

void registerPhasePipelines();

} // namespace flow
