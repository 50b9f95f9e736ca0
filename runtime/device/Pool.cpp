// Chunks are claimed dynamically with tickets that carry the region's number,
// so that a late worker cannot take a chunk of the next region. The caller
// works too; workers spin shortly and then sleep.
#include "runtime/device/Pool.h"

#include "include/flow/Runtime/abi.h"
#include "runtime/device/Threads.h"
#include "runtime/device/Wait.h"

#include <atomic>
#include <sched.h>

namespace flow::runtime {
namespace {

using Body = void (*)(void *, int64_t);

struct Pool {
  Counter region;
  alignas(64) std::atomic<uint64_t> ticket{0}; // region in the high half, next chunk in the low
  alignas(64) std::atomic<int64_t> done{0};
  std::atomic<Body> body{nullptr};
  std::atomic<void *> context{nullptr};
  std::atomic<int64_t> chunks{0};
  std::atomic<bool> busy{false};
  int workers = 0;

  void work(uint32_t number) {
    while (true) {
      uint64_t t = ticket.load(std::memory_order_acquire);
      if (uint32_t(t >> 32) != number ||
          int64_t(t & 0xffffffff) >= chunks.load(std::memory_order_relaxed))
        return;
      if (!ticket.compare_exchange_weak(t, t + 1, std::memory_order_acq_rel))
        continue;
      // The region cannot end before this chunk: body and context are its own.
      body.load(std::memory_order_relaxed)(context.load(std::memory_order_relaxed),
                                           int64_t(t & 0xffffffff));
      done.fetch_add(1, std::memory_order_release);
    }
  }

  void workForever(const Patience &patience) {
    for (uint32_t seen = 0;; ++seen) {
      waitFor(region, seen + 1, patience);
      uint32_t now = region.value.load(std::memory_order_acquire);
      work(now);
      seen = now - 1;
    }
  }

  void run(Body f, void *c, int64_t n) {
    uint32_t number = region.value.load(std::memory_order_relaxed) + 1;
    body.store(f, std::memory_order_relaxed);
    context.store(c, std::memory_order_relaxed);
    chunks.store(n, std::memory_order_relaxed);
    done.store(0, std::memory_order_relaxed);
    ticket.store(uint64_t(number) << 32, std::memory_order_release);
    region.publish(number);
    work(number);
    for (uint32_t spins = 0; done.load(std::memory_order_acquire) < n; ++spins)
      if (spins > 2000)
        sched_yield();
  }
};

// Trivially destructible and constant-initialised: no code runs for it at start or exit.
constinit Pool pool;

} // namespace

void startPool(int threads, const std::vector<int> &cores) {
  Patience patience = Patience::forThreads(threads, cores.empty() ? 1 : threads);
  if (!cores.empty())
    pinToCore(cores[0]);
  patience.limitSeconds = 1e18;
  // The next region often follows within some tens of microseconds, which is what a wake-up costs.
  // Yielding leaves the core to anyone who needs it.
  if (!cores.empty())
    patience.yields = 256;
  for (int i = 1; i < threads; ++i) {
    pthread_t t;
    int core = i < int(cores.size()) ? cores[size_t(i)] : -1;
    bool started = startThread(t, "flow-worker", [core, patience] {
      if (core >= 0)
        pinToCore(core);
      pool.workForever(patience);
    });
    if (!started)
      break;
    pool.workers = i;
  }
}

} // namespace flow::runtime

extern "C" void flow_rt_parallel(void (*body)(void *, int64_t), void *context, int64_t chunks) {
  using flow::runtime::pool;
  // A second stream that also wants the workers does its work alone.
  if (pool.workers == 0 || chunks < 2 || pool.busy.exchange(true, std::memory_order_acquire)) {
    for (int64_t i = 0; i < chunks; ++i)
      body(context, i);
    return;
  }
  pool.run(body, context, chunks);
  pool.busy.store(false, std::memory_order_release);
}
