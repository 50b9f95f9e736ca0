// Chooses one row per node along one mesh axis: least traffic, with work that the
// user asked to be split kept split.
#pragma once

#include "lib/Planning/BoxingCost.h"
#include "lib/Planning/ProgramGraph.h"

namespace flow {

/// The problem along one axis.
struct AxisProblem {
  const ProgramGraph &graph;
  const CostModel &model;
  int64_t ranks;
  std::vector<llvm::SmallVector<Signature>> rows; // per node, at least one
  std::vector<llvm::SmallVector<double>> work;    // of each row, in bytes
};

/// Row numbers, one per node. A forward sweep takes the cheapest row given the
/// producers; then moves change one node and let the change run through its
/// neighbours while that costs nothing, and are kept if the whole gets cheaper.
/// Deterministic; time does not depend on the number of ranks.
std::vector<unsigned> solveAxis(const AxisProblem &problem);

} // namespace flow
