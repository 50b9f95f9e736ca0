#include "runtime/engine/Job.h"

#include "runtime/device/SharedRegion.h"

#include <cstdio>
#include <unistd.h>

namespace flow::runtime {

size_t Job::sharedBytes(int ranks) {
  size_t n = size_t(ranks);
  return alignUp(sizeof(Control), 64) + alignUp(n * sizeof(RankRecord), 64) +
         kReportDepth * sizeof(Posted) + alignUp(kReportDepth * n * sizeof(Report), 64);
}

void Job::bind(char *shared, int ranks, int wakeFd) {
  size_t n = size_t(ranks);
  control_ = reinterpret_cast<Control *>(shared);
  shared += alignUp(sizeof(Control), 64);
  records_ = reinterpret_cast<RankRecord *>(shared);
  shared += alignUp(n * sizeof(RankRecord), 64);
  posted_ = reinterpret_cast<Posted *>(shared);
  shared += kReportDepth * sizeof(Posted);
  reports_ = reinterpret_cast<Report *>(shared);
  ranks_ = ranks;
  wakeFd_ = wakeFd;
}

static void notify(int fd) {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t n = write(fd, &one, sizeof one);
}

void Job::fail(int rank, const Status &why) {
  // Without a text somebody else has failed first and said why.
  if (why.text().empty())
    return;
  RankRecord &record = records_[rank];
  record.code = why.code();
  snprintf(record.text, sizeof record.text, "%s", why.text().c_str());
  uint32_t nobody = 0;
  control_->failed.compare_exchange_strong(nobody, uint32_t(rank) + 1);
  notify(wakeFd_);
}

Report *Job::openReport(uint64_t run, int rank, const Patience &patience) {
  if (waitFor(control_->consumed, uint32_t(run) + 1 - kReportDepth, patience) != Waited::reached)
    return nullptr;
  return &at(run, rank);
}

void Job::postReport(uint64_t run, uint32_t expected) {
  std::atomic<uint32_t> &count = posted_[run % kReportDepth].count;
  // The supervisor looks by itself some times a second; steps may be shorter than a system call.
  if (count.fetch_add(1, std::memory_order_acq_rel) + 1 == expected &&
      run % (kReportDepth / 4) == kReportDepth / 4 - 1)
    notify(wakeFd_);
}

int Job::failedRank() const {
  return int(control_->failed.load(std::memory_order_acquire));
}

Status Job::failure(int rank) const {
  return {ExitCode(records_[rank].code), records_[rank].text};
}

bool Job::reportReady(uint64_t run, uint32_t expected) const {
  return posted_[run % kReportDepth].count.load(std::memory_order_acquire) >= expected;
}

const Report &Job::report(uint64_t run, int rank) const {
  return at(run, rank);
}

void Job::closeReport(uint64_t run) {
  posted_[run % kReportDepth].count.store(0, std::memory_order_relaxed);
  control_->consumed.publish(uint32_t(run) + 1);
}

} // namespace flow::runtime
