// What the ranks of a job run, one program after the other. Every rank and
// every stream asks for itself, so the answers depend on the arguments only.
#ifndef FLOW_RUNTIME_ENGINE_WORKLOAD_H
#define FLOW_RUNTIME_ENGINE_WORKLOAD_H

#include "include/flow/Runtime/abi.h"
#include "runtime/device/Status.h"
#include "runtime/engine/Placement.h"

#include <cstdint>

namespace flow::runtime {

/// One run of a program.
struct Run {
  uint32_t program = 0;
  uint64_t index = 0; /// among the runs of this program
  uint64_t epoch = 0;
  int64_t position = 0; /// of the first sample in the epoch's order
  int64_t samples = 0;  /// less than a batch in the last run of an evaluation
};

class Workload {
public:
  virtual ~Workload() = default;
  virtual uint64_t numRuns() const = 0;
  virtual Run run(uint64_t number) const = 0;
  /// The value of a FLOW_SCALAR tensor.
  virtual double scalar(const Run &run, const flow_tensor &tensor) const = 0;
  /// Writes this rank's part of an input or label, of one micro-batch.
  virtual Status load(const Run &run, uint32_t tensor, uint32_t microBatch, const RankPlace &place,
                      void *to) const = 0;
};

} // namespace flow::runtime

#endif
