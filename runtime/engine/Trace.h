// When each actor fired. A stream records into memory of its own; the
// supervisor writes all of it as Chrome trace JSON, which Perfetto opens.
#ifndef FLOW_RUNTIME_ENGINE_TRACE_H
#define FLOW_RUNTIME_ENGINE_TRACE_H

#include "include/flow/Runtime/abi.h"
#include "runtime/device/Status.h"

#include <string>
#include <vector>

namespace flow::runtime {

struct TraceEvent {
  uint64_t beginNs, endNs;
  uint64_t run; /// of the program, from 0: the step
  uint32_t program, actor, microBatch;
  uint32_t stream;
};

/// A stream records at most this many events: the file would be too large to open.
constexpr size_t kMaxTraceEventsPerStream = size_t(1) << 18;

/// Appends a rank's events to a file descriptor that the supervisor keeps.
void saveTrace(int fd, const std::vector<TraceEvent> &events);
/// Reads them back, from the start.
std::vector<TraceEvent> readTrace(int fd);

/// `fds` holds one file per rank. `cut` tells whether a stream had more events than it recorded.
Status writeTrace(const std::string &path, const flow_plan &plan, const std::vector<int> &fds,
                  bool &cut);

} // namespace flow::runtime

#endif
