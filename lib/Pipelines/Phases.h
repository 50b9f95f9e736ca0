// The phases of the walk as pipelines: each ends in its verify pass, each is
// known to flow-opt by name.
#pragma once
#include "mlir/Pass/PassOptions.h"
#include <cstdint>
#include <string>

namespace mlir {
class OpPassManager;
}

namespace flow {

/// `--flow-import-pipeline`: fixes dynamic dims; what came from a file is complete.
struct ImportOptions : mlir::PassPipelineOptions<ImportOptions> {
  ListOption<std::string> dims{*this, "dim", llvm::cl::desc("NAME=N: the size of a dynamic dim")};
  Option<int64_t> batch{*this, "batch", llvm::cl::init(0),
                        llvm::cl::desc("first dim of every input; 0: as in the model")};
};
void buildImportPipeline(mlir::OpPassManager &pm, const ImportOptions &options);

/// `--flow-legalize-pipeline`: flow.operator to linalg on static tensors, weights to arguments.
void buildLegalizePipeline(mlir::OpPassManager &pm);

/// What the user asks of a distribution, as `--flow-apply-constraints` takes it.
struct DistributeOptions : mlir::PassPipelineOptions<DistributeOptions> {
  Option<std::string> mesh{*this, "mesh", llvm::cl::init("rank=1"),
                           llvm::cl::desc("AXIS=SIZE,...")};
  ListOption<std::string> sbp{*this, "sbp", llvm::cl::desc("NAME=[B,S(0)]")};
  ListOption<std::string> stages{*this, "stage", llvm::cl::desc("PATTERN=K")};
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

/// `--flow-lower-kernels-pipeline`: kernel functions to LLVM, for a processor.
struct CpuKernelOptions : mlir::PassPipelineOptions<CpuKernelOptions> {
  Option<unsigned> vectorBits{*this, "vector-bits", llvm::cl::init(256),
                              llvm::cl::desc("width of a vector register")};
  Option<unsigned> registers{*this, "registers", llvm::cl::init(16),
                             llvm::cl::desc("number of vector registers")};
  Option<unsigned> chunks{*this, "chunks", llvm::cl::init(8),
                          llvm::cl::desc("pieces of a large kernel for the worker threads")};
};
void buildLowerKernelsPipeline(mlir::OpPassManager &pm, const CpuKernelOptions &options);

/// `--flow-schedule-pipeline`: total orders, offsets and waits.
void buildSchedulePipeline(mlir::OpPassManager &pm);

/// `--flow-tables-pipeline`: the plans become constant tables in the LLVM dialect.
void buildTablesPipeline(mlir::OpPassManager &pm);

void registerPhasePipelines();

} // namespace flow
