// The cores that this process may use, and threads on them.
#ifndef FLOW_RUNTIME_DEVICE_THREADS_H
#define FLOW_RUNTIME_DEVICE_THREADS_H

#include <functional>
#include <pthread.h>
#include <vector>

namespace flow::runtime {

/// The cores of the affinity mask, in order.
std::vector<int> usableCores();

/// Keeps the calling thread on one core.
void pinToCore(int core);

/// Starts a thread; false if the system has no more.
bool startThread(pthread_t &thread, const char *name, std::function<void()> body);

} // namespace flow::runtime

#endif
