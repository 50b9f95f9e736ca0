// First fit over buffers, largest first or in order of their start.
#include "lib/Scheduling/Packing.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <functional>
#include <tuple>

using namespace flow;
using namespace flow::scheduling;

int64_t scheduling::alignedBytes(int64_t bytes) {
  return llvm::alignTo(bytes, actor::alignmentInBytes);
}

namespace {
struct Lifetime {
  int64_t start = INT64_MAX, end = 0;
};
} // namespace

static Lifetime lifetimeOf(const ClassGraph &cls, const Buffer &buffer, const Orders &orders) {
  Lifetime life;
  for (unsigned f : buffer.touches) {
    life.start = std::min(life.start, orders.startNs[cls.firings[f].transition]);
    life.end = std::max(life.end, orders.endNs[cls.firings[f].transition]);
  }
  return life;
}

static int64_t peakBytes(const ClassGraph &cls, llvm::ArrayRef<unsigned> buffers,
                         llvm::ArrayRef<Lifetime> lives) {
  std::vector<std::pair<int64_t, int64_t>> events; // time, change: frees come before takes
  for (unsigned i : buffers) {
    events.push_back({lives[i].start, alignedBytes(cls.buffers[i].bytes)});
    events.push_back({lives[i].end, -alignedBytes(cls.buffers[i].bytes)});
  }
  std::sort(events.begin(), events.end());
  int64_t live = 0, peak = 0;
  for (auto [time, change] : events)
    peak = std::max(peak, live += change);
  return peak;
}

/// Places `buffers` in this order, each at the lowest free offset; returns the top.
static int64_t firstFit(const ClassGraph &cls, llvm::ArrayRef<unsigned> buffers,
                        const WaitGraph &waits, std::vector<int64_t> &offsets) {
  std::vector<unsigned> placed; // by offset
  int64_t top = 0;
  for (unsigned i : buffers) {
    const Buffer &buffer = cls.buffers[i];
    int64_t size = alignedBytes(buffer.bytes), offset = 0;
    for (unsigned other : placed) {
      const Buffer &there = cls.buffers[other];
      int64_t begin = offsets[other], end = begin + alignedBytes(there.bytes);
      if (end <= offset || waits.isBefore(buffer, there) || waits.isBefore(there, buffer))
        continue;
      if (offset + size <= begin)
        break;
      offset = end;
    }
    offsets[i] = offset;
    top = std::max(top, offset + size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](unsigned a, unsigned b) { return offsets[a] < offsets[b]; }),
                  i);
  }
  return top;
}

Memory scheduling::packBuffers(StepGraph &graph, unsigned c, const Orders &orders,
                               const WaitGraph &waits) {
  ClassGraph &cls = graph.classes[c];
  Memory memory;
  std::vector<unsigned> packed;
  std::vector<Lifetime> lives(cls.buffers.size());
  for (auto [i, buffer] : llvm::enumerate(cls.buffers)) {
    if (buffer.isState || buffer.touches.empty() || buffer.bytes == 0)
      continue;
    if (buffer.isExchanged) {
      // Two slots of its own: it lives across steps.
      buffer.offset = memory.arenaBytes;
      memory.arenaBytes += 2 * alignedBytes(buffer.bytes);
      continue;
    }
    lives[i] = lifetimeOf(cls, buffer, orders);
    packed.push_back(i);
  }
  memory.liveBytes = memory.arenaBytes + peakBytes(cls, packed, lives);
  int64_t best = INT64_MAX;
  std::vector<int64_t> offsets(cls.buffers.size()), bestOffsets;
  // What is placed first lies best: try the large, the early, the long-lived,
  // and those that are both.
  auto length = [&](unsigned i) { return lives[i].end - lives[i].start; };
  const std::function<double(unsigned)> keys[] = {
      [&](unsigned i) { return -double(cls.buffers[i].bytes); },
      [&](unsigned i) { return double(lives[i].start); },
      [&](unsigned i) { return -double(length(i)); },
      [&](unsigned i) { return -double(length(i)) * cls.buffers[i].bytes; }};
  for (auto &key : keys) {
    std::stable_sort(packed.begin(), packed.end(), [&](unsigned a, unsigned b) {
      return std::tuple(key(a), lives[a].start, a) < std::tuple(key(b), lives[b].start, b);
    });
    int64_t top = firstFit(cls, packed, waits, offsets);
    if (top < best) {
      best = top;
      bestOffsets = offsets;
    }
  }
  for (unsigned i : packed)
    cls.buffers[i].offset = memory.arenaBytes + bestOffsets[i];
  memory.arenaBytes += packed.empty() ? 0 : best;
  return memory;
}
