// What each firing of a class waits for on other streams, by vector clocks.
#pragma once

#include "lib/Scheduling/ListSchedule.h"

namespace flow::scheduling {

/// Per stream how many firings have finished, counted from the start of the
/// step: 0 means that all earlier steps are done, negative counts go back into
/// them.
using Clock = std::array<int64_t, numStreams>;
constexpr int64_t unknown = INT64_MIN / 4;

/// `count` as in Clock.
struct Wait {
  unsigned stream;
  int64_t count;
};

class WaitGraph {
public:
  /// The waits within a step: what the data demands and nothing implies.
  WaitGraph(const StepGraph &graph, unsigned cls, const Orders &orders);

  /// Adds the waits between steps, once buffers have offsets.
  void addStepBoundary();

  unsigned position(unsigned firing) const { return positions[firing]; }
  unsigned firings(unsigned stream) const { return order[stream].size(); }
  /// What has finished when a firing starts, in every timing.
  const Clock &atStart(unsigned firing) const { return clocks[firing]; }
  /// Whether every use of `a` has finished when `b` is first written.
  bool isBefore(const Buffer &a, const Buffer &b) const;
  llvm::ArrayRef<Wait> waits(unsigned firing) const { return waitsOf[firing]; }

private:
  const ClassGraph &cls;
  const std::array<std::vector<unsigned>, numStreams> &order;
  std::vector<unsigned> sequence; ///< firings of this class by start
  std::vector<unsigned> positions;
  std::vector<Clock> clocks;
  std::vector<llvm::SmallVector<Wait, 2>> waitsOf;

  unsigned streamOf(unsigned firing) const {
    return static_cast<unsigned>(cls.firings[firing].stream);
  }
  Clock afterwards(unsigned firing) const;
  void propagate(const std::array<Clock, numStreams> &start);
  std::array<Clock, numStreams> endOfStep() const;
  Clock lastUses(const Buffer &buffer) const;
  void require(std::vector<Clock> &needed, unsigned firing, const Clock &clock) const;
};

} // namespace flow::scheduling
