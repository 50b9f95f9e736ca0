// Distributed tensors and files: states from the weights file, outputs and
// parameters put together from what the ranks hold.
#ifndef FLOW_RUNTIME_CHECKPOINT_SHARDS_H
#define FLOW_RUNTIME_CHECKPOINT_SHARDS_H

#include "include/flow/Runtime/abi.h"
#include "runtime/data/WeightsFile.h"
#include "runtime/engine/Placement.h"

#include <functional>
#include <string>
#include <vector>

namespace flow::runtime {

/// Checks that the file has all states of the plan.
Status checkStates(const flow_plan &plan, const WeightsFile &weights);
/// Fills a rank's states with its shards of the file; states without a place in it stay zero.
Status loadStates(const flow_plan &plan, const WeightsFile &weights, const RankPlace &place,
                  char *states);

/// The whole of a distributed tensor from its parts: split parts side by side, partial ones
/// combined in rank order, copies taken from coordinate 0. `part(rank)` is a rank's dense part.
std::vector<char> assemble(const flow_plan &plan, uint32_t dtype, const int64_t *shape,
                           uint32_t rank, const flow_sbp *sbp, uint32_t stage,
                           const std::function<const char *(int)> &part);

/// Writes the parameters, beside the final name, and renames.
Status saveModel(const std::string &path, const flow_plan &plan,
                 const std::vector<RankMemory> &memory);

} // namespace flow::runtime

#endif
