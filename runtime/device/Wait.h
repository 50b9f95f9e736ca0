// Waiting for a counter that another thread or process advances: spin about
// 2 us, then yield, then sleep in the kernel. A long pure spin costs
// milliseconds when cores are short, a futex alone costs microseconds when
// they are not.
#ifndef FLOW_RUNTIME_DEVICE_WAIT_H
#define FLOW_RUNTIME_DEVICE_WAIT_H

#include <atomic>
#include <cstdint>

namespace flow::runtime {

/// Only its owner advances it. Counters wrap: targets are compared by the
/// sign of the difference.
struct Counter {
  std::atomic<uint32_t> value{0};
  std::atomic<uint32_t> sleepers{0};

  bool reached(uint32_t target) const {
    return int32_t(value.load(std::memory_order_acquire) - target) >= 0;
  }
  /// Advances and wakes who sleeps on it.
  void publish(uint32_t v) {
    value.store(v, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst))
      wake();
  }
  /// Advances for those who look by themselves.
  void set(uint32_t v) { value.store(v, std::memory_order_release); }
  void wake();
};

enum class Waited { reached, aborted, timedOut };

/// How long a wait tries each way, and what ends it early.
struct Patience {
  uint32_t spins = 64;
  uint32_t yields = 32;
  double limitSeconds = 300;
  const std::atomic<uint32_t> *abort = nullptr; /// nonzero: the job is over

  /// Spins for about 2 us when there is a core per thread that runs, briefly otherwise.
  static Patience forThreads(int runningThreads, int cores);
};

Waited waitSlowly(Counter &counter, uint32_t target, const Patience &patience);

inline Waited waitFor(Counter &counter, uint32_t target, const Patience &patience) {
  if (counter.reached(target))
    return Waited::reached;
  return waitSlowly(counter, target, patience);
}

uint64_t nowNs();

} // namespace flow::runtime

#endif
