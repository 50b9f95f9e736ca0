// safetensors files: the initial weights that stand beside a program, and the
// model that a training leaves.
#ifndef FLOW_RUNTIME_CHECKPOINT_WEIGHTS_H
#define FLOW_RUNTIME_CHECKPOINT_WEIGHTS_H

#include "include/flow/Runtime/abi.h"
#include "runtime/device/Status.h"
#include "runtime/engine/Engine.h"

#include <functional>
#include <string>
#include <vector>

namespace flow::runtime {

class WeightsFile {
public:
  WeightsFile() = default;
  WeightsFile(const WeightsFile &) = delete;
  WeightsFile &operator=(const WeightsFile &) = delete;
  ~WeightsFile();

  /// A relative name is looked up beside the running executable; null: no weights.
  Status open(const char *name);
  /// `bytes` bytes of the data at `offset`, which belong to `tensor`.
  Status find(const char *tensor, int64_t offset, size_t bytes, const char *&data) const;

private:
  std::string path_;
  const char *mapped_ = nullptr;
  size_t size_ = 0;
  size_t dataAt_ = 0;
};

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
