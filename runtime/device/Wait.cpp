#include "runtime/device/Wait.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace flow::runtime {

uint64_t nowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

static void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

void Counter::wake() {
  syscall(SYS_futex, &value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

Patience Patience::forThreads(int runningThreads, int cores) {
  Patience p;
  uint64_t start = nowNs();
  for (int i = 0; i < 256; ++i)
    pause();
  uint64_t perPause = (nowNs() - start) / 256 + 1;
  bool room = runningThreads <= cores;
  p.spins = uint32_t((room ? 2000 : 200) / perPause) + 1;
  p.yields = room ? 16 : 64;
  return p;
}

Waited waitSlowly(Counter &counter, uint32_t target, const Patience &patience) {
  for (uint32_t i = 0; i < patience.spins; ++i) {
    pause();
    if (counter.reached(target))
      return Waited::reached;
  }
  for (uint32_t i = 0; i < patience.yields; ++i) {
    sched_yield();
    if (counter.reached(target))
      return Waited::reached;
  }
  // A sleeper looks at the abort flag between naps.
  const timespec nap{0, 20'000'000};
  uint64_t start = nowNs();
  Waited result = Waited::reached;
  counter.sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (true) {
    uint32_t seen = counter.value.load(std::memory_order_seq_cst);
    if (int32_t(seen - target) >= 0)
      break;
    if (patience.abort && patience.abort->load(std::memory_order_acquire)) {
      result = Waited::aborted;
      break;
    }
    if (double(nowNs() - start) > patience.limitSeconds * 1e9) {
      result = Waited::timedOut;
      break;
    }
    syscall(SYS_futex, &counter.value, FUTEX_WAIT, seen, &nap, nullptr, 0);
  }
  counter.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return result;
}

} // namespace flow::runtime
