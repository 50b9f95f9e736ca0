// The decision: SBP of every value that a function reads and makes.
#pragma once

#include "lib/Planning/BoxingCost.h"
#include "lib/Planning/ProgramGraph.h"

namespace flow {

/// One SBP list per value.
using NdSbp = llvm::SmallVector<SbpAttr>;

struct FunctionPlan {
  /// How values are held where they are made, and how each op reads its tensors
  /// (in the order of Section::withInits' inputs).
  llvm::DenseMap<mlir::Value, NdSbp> values;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<NdSbp>> reads;
  /// Function results.
  llvm::SmallVector<NdSbp> results;
};

/// Decides one function. `fixedStates` holds the SBP of states (by the symbol of
/// their initial value) that other functions have decided; those decided here are
/// added. Ops that run whole although the user asked for a split get a remark.
FunctionPlan planFunction(mlir::func::FuncOp function, MeshAttr mesh, const CostModel &model,
                          llvm::MapVector<mlir::Attribute, NdSbp> &fixedStates);

/// The dim of a function argument that numbers samples: 1 behind a dim of
/// micro-batches, else 0.
int64_t batchDimOf(mlir::BlockArgument argument);

} // namespace flow
