// The ranks of a job on this machine: forked from this process, over memory
// that all of them see, watched until the last one has ended.
#ifndef FLOW_RUNTIME_LAUNCH_LOCALJOB_H
#define FLOW_RUNTIME_LAUNCH_LOCALJOB_H

#include "runtime/checkpoint/Shards.h"
#include "runtime/comm/shm/ShmComm.h"
#include "runtime/device/SharedRegion.h"
#include "runtime/engine/Engine.h"
#include "runtime/launch/Environment.h"

#include <sys/types.h>

namespace flow::runtime {

/// What the supervisor does while the ranks run.
class Observer {
public:
  virtual ~Observer() = default;
  /// All reports about a run have come: `job.report(number, rank)`.
  virtual Status onRun(uint64_t number, const Job &job) = 0;
  /// After the runs that have just been reported, some times a second.
  virtual Status onTick() { return {}; }
  /// Before an error is printed, or the job ends by a signal.
  virtual void onEnd() {}
};

class LocalJob {
public:
  LocalJob(const flow_plan &plan, const Environment &environment, bool trace);
  ~LocalJob();

  /// Memory, groups and channels of all ranks.
  Status create();
  /// Forks the ranks, lets them run the workload, and returns when none is left. A code above 128
  /// without a text: ended by signal code - 128.
  Status run(const Workload &workload, const WeightsFile &weights, Observer &observer);

  /// After the run: the memory of each rank.
  const std::vector<RankMemory> &memory() const { return memory_; }
  const std::vector<int> &traceFds() const { return traceFds_; }

private:
  [[noreturn]] void rankMain(int rank, const Workload &workload, const WeightsFile &weights);
  Status startRanks(const Workload &workload, const WeightsFile &weights);
  Status supervise(const Workload &workload, Observer &observer);
  Status drainReports(const Workload &workload, Observer &observer);
  /// Reaps ranks that have ended; the first bad end is the result.
  Status reap(int &alive);
  void killAll();

  const flow_plan &plan_;
  Environment environment_;
  bool trace_;
  int ranks_;
  SharedRegion region_;
  Job job_;
  ShmComm comm_;
  char *commMemory_ = nullptr;
  std::vector<RankMemory> memory_;
  std::vector<int> traceFds_;
  std::vector<pid_t> pids_;          /// 0: has ended
  std::vector<uint32_t> numReports_; /// per program
  uint64_t nextRun_ = 0;
  int signalFd_ = -1, wakeFd_ = -1;
};

} // namespace flow::runtime

#endif
