// The rank's compute threads behind flow_rt_parallel.
#ifndef FLOW_RUNTIME_DEVICE_POOL_H
#define FLOW_RUNTIME_DEVICE_POOL_H

#include <vector>

namespace flow::runtime {

/// Starts threads - 1 workers; `cores` gives one core per thread (the first is
/// the caller's) or is empty. Called once per process, before any kernel runs.
void startPool(int threads, const std::vector<int> &cores);

} // namespace flow::runtime

#endif
