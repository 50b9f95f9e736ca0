// Runs a plan on one rank: a thread per stream fires the stream's actors in
// the plan's order, each after the firings of other streams that it waits for.
// It knows nothing but the tables.
#ifndef FLOW_RUNTIME_ENGINE_ENGINE_H
#define FLOW_RUNTIME_ENGINE_ENGINE_H

#include "include/flow/Runtime/abi.h"
#include "runtime/comm/Comm.h"
#include "runtime/engine/Job.h"
#include "runtime/engine/Placement.h"
#include "runtime/engine/Trace.h"
#include "runtime/engine/Workload.h"

#include <memory>
#include <vector>

namespace flow::runtime {

struct EngineOptions {
  int rank = 0;
  Patience patience;
  int threads = 1;        /// of flow_rt_parallel, the compute stream's own included
  std::vector<int> cores; /// to pin them to; empty: not pinned
  int traceFd = -1;       /// -1: no trace
  uint64_t delaySeed = 0; /// a test delays firings at random
  uint32_t maxDelayUs = 0;
};

/// Where a register lies after the last firing that uses it; null if nothing uses it.
char *registerAddress(const flow_plan &plan, const flow_class &cls, uint32_t reg,
                      const RankMemory &memory, uint32_t program, uint64_t runIndex);

class Engine {
public:
  Engine(const flow_plan &plan, const Workload &workload, Job &job, Comm &comm,
         const RankMemory &memory, EngineOptions options);
  ~Engine();

  /// Turns the tables into what the streams walk through.
  Status prepare();
  /// All runs of the workload. A stream that fails ends the job and this process.
  void run();

private:
  struct Wait {
    uint32_t stream;
    uint32_t previous;
    uint32_t count;
  };
  struct Firing {
    flow_kernel kernel; /// null: a collective, a load, a copy
    uint32_t buffers;   /// first one in Stream::buffers
    uint32_t firstWait, numWaits;
    uint32_t actor, microBatch;
    int32_t endpoint = -1;
    int32_t report = -1;  /// first value to report when this firing has ended
    bool watched = false; /// a stream may sleep until this firing has ended
  };
  struct Reported {
    bool isLoss;
    uint32_t dtype;
    const void *at[2]; /// in even and odd runs
    int32_t next;      /// another value of the same firing, or -1
  };
  struct Stream {
    std::vector<Firing> firings;
    std::vector<void *> buffers[2]; /// in even and odd runs
    std::vector<Wait> waits;
    alignas(64) Counter done; /// firings, over all runs
  };
  struct Program {
    const flow_program *table = nullptr;
    const flow_class *cls = nullptr; /// null: this rank has no part in it
    uint32_t number = 0;
    Stream streams[FLOW_NUM_STREAMS];
    std::vector<Reported> reported;
    std::vector<uint64_t> ids; /// of each actor's operation
    uint32_t numReports = 0;
  };

  Status prepareProgram(Program &program);
  void prepareStream(Program &program, uint32_t stream);
  Status prepareReports(Program &program);

  void streamMain(uint32_t stream);
  Status beginRun(Program &program, uint32_t stream, uint64_t number, const Run &run);
  template <bool Observed>
  Status fireAll(Program &program, uint32_t stream, uint64_t number, const Run &run);
  Status fireOther(Program &program, uint32_t stream, const Firing &firing, void *const *buffers,
                   const Run &run);
  Status report(Program &program, const Reported &value, uint64_t number, const Run &run);
  Status await(Program &program, uint32_t stream, uint32_t target, const char *who);
  void delay(uint32_t stream, uint64_t number, size_t firing);

  const flow_plan &plan_;
  const Workload &workload_;
  Job &job_;
  Comm &comm_;
  RankMemory memory_;
  EngineOptions options_;
  RankPlace place_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<TraceEvent> events_[FLOW_NUM_STREAMS];
};

} // namespace flow::runtime

#endif
