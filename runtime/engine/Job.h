// What the supervisor and its ranks share: the end of the job, the reason for
// it, and what the ranks report about each step.
#ifndef FLOW_RUNTIME_ENGINE_JOB_H
#define FLOW_RUNTIME_ENGINE_JOB_H

#include "runtime/device/Status.h"
#include "runtime/device/Wait.h"

#include <atomic>
#include <cstdint>

namespace flow::runtime {

/// One rank about one run of a program. Values are this rank's share.
struct Report {
  double loss;
  double correct;
  uint64_t startNs;
  uint64_t lossNs;
};

class Job {
public:
  /// Reports of this many runs may wait for the supervisor; ranks that are further ahead wait.
  static constexpr uint32_t kReportDepth = 4096;

  static size_t sharedBytes(int ranks);
  /// `wakeFd` is an eventfd that is written when reports pile up or a rank fails.
  void bind(char *shared, int ranks, int wakeFd);

  // ---- ranks ----
  /// Ends the job; the first one to call is named by the supervisor.
  void fail(int rank, const Status &why);
  const std::atomic<uint32_t> &abortFlag() const { return control_->failed; }
  /// The place of a rank's report about run `run`, when the supervisor has read the one before it
  /// there.
  Report *openReport(uint64_t run, int rank, const Patience &patience);
  /// One of `expected` values of a run has been written.
  void postReport(uint64_t run, uint32_t expected);

  // ---- supervisor ----
  /// 1 + the rank that ended the job, or 0.
  int failedRank() const;
  Status failure(int rank) const;
  bool reportReady(uint64_t run, uint32_t expected) const;
  const Report &report(uint64_t run, int rank) const;
  void closeReport(uint64_t run);

private:
  struct alignas(64) Control {
    std::atomic<uint32_t> failed;
    alignas(64) Counter consumed; /// runs whose reports the supervisor has read
  };
  struct RankRecord {
    int code;
    char text[1020];
  };
  struct alignas(64) Posted {
    std::atomic<uint32_t> count;
  };

  Report &at(uint64_t run, int rank) const {
    return reports_[size_t(run % kReportDepth) * size_t(ranks_) + size_t(rank)];
  }

  Control *control_ = nullptr;
  RankRecord *records_ = nullptr;
  Posted *posted_ = nullptr;
  Report *reports_ = nullptr;
  int ranks_ = 0;
  int wakeFd_ = -1;
};

} // namespace flow::runtime

#endif
