// Greedy list scheduling of transitions onto the streams of all classes.
#pragma once

#include "lib/Scheduling/StepGraph.h"

namespace flow::scheduling {

struct Orders {
  /// Firings per class and stream.
  std::vector<std::array<std::vector<unsigned>, numStreams>> streams;
  /// Transitions by start; an order along all edges.
  std::vector<unsigned> sequence;
  std::vector<int64_t> startNs, endNs; ///< per transition, in the expected timing
  int64_t timeNs = 0;
  bool isComplete = false; ///< false: some transitions can never start
};

/// At each event starts, by priority, every ready transition whose streams are
/// all free.
Orders listSchedule(const StepGraph &graph, llvm::ArrayRef<double> priority);

} // namespace flow::scheduling
