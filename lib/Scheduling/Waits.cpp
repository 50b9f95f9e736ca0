// Waits between streams. Three passes: waits within a step; what these imply
// about the steps before; then waits between steps that are not implied. Waits
// of the last kind are never used to drop others of their kind but those of the
// same step that come later: a wait must not justify itself a step later.
#include "lib/Scheduling/Waits.h"
#include <algorithm>
#include <map>

using namespace flow;
using namespace flow::scheduling;

static void join(Clock &into, const Clock &other) {
  for (unsigned s = 0; s < numStreams; ++s)
    into[s] = std::max(into[s], other[s]);
}

static Clock unknownClock() {
  Clock clock;
  clock.fill(unknown);
  return clock;
}

/// The clock of a firing once it has finished.
Clock WaitGraph::afterwards(unsigned firing) const {
  Clock clock = clocks[firing];
  clock[streamOf(firing)] = positions[firing] + 1;
  return clock;
}

WaitGraph::WaitGraph(const StepGraph &graph, unsigned c, const Orders &orders)
    : cls(graph.classes[c]), order(orders.streams[c]), positions(cls.firings.size()),
      clocks(cls.firings.size(), unknownClock()), waitsOf(cls.firings.size()) {
  for (unsigned t : orders.sequence)
    for (Member member : graph.transitions[t].members)
      if (member.cls == c)
        sequence.push_back(member.firing);
  for (auto &stream : order)
    for (auto [k, firing] : llvm::enumerate(stream))
      positions[firing] = k;
  for (unsigned f : sequence) {
    unsigned own = streamOf(f);
    Clock &clock = clocks[f];
    if (positions[f] > 0)
      clock = afterwards(order[own][positions[f] - 1]);
    clock[own] = positions[f];
    Clock needed = unknownClock();
    for (unsigned before : cls.predecessors[f])
      needed[streamOf(before)] = std::max<int64_t>(needed[streamOf(before)], positions[before] + 1);
    auto awaited = [&](unsigned s) { return order[s][needed[s] - 1]; };
    for (unsigned s = 0; s < numStreams; ++s) {
      if (s == own || needed[s] <= clock[s])
        continue;
      bool isImplied = false;
      for (unsigned other = 0; other < numStreams; ++other)
        if (other != s && other != own && needed[other] > clock[other] &&
            afterwards(awaited(other))[s] >= needed[s])
          isImplied = true;
      if (!isImplied)
        waitsOf[f].push_back({s, needed[s]});
    }
    for (Wait wait : waitsOf[f])
      join(clock, afterwards(order[wait.stream][wait.count - 1]));
  }
}

void WaitGraph::propagate(const std::array<Clock, numStreams> &start) {
  for (unsigned f : sequence) {
    unsigned own = streamOf(f);
    Clock &clock = clocks[f];
    join(clock, positions[f] > 0 ? afterwards(order[own][positions[f] - 1]) : start[own]);
    for (Wait wait : waitsOf[f])
      if (wait.count > 0)
        join(clock, afterwards(order[wait.stream][wait.count - 1]));
  }
}

/// What each stream knows when the next step starts.
std::array<Clock, numStreams> WaitGraph::endOfStep() const {
  std::array<Clock, numStreams> end;
  for (unsigned s = 0; s < numStreams; ++s) {
    end[s] = order[s].empty() ? unknownClock() : afterwards(order[s].back());
    for (unsigned other = 0; other < numStreams; ++other)
      if (end[s][other] != unknown)
        end[s][other] -= order[other].size();
    end[s][s] = 0;
  }
  return end;
}

bool WaitGraph::isBefore(const Buffer &a, const Buffer &b) const {
  if (b.writer < 0 || a.touches.empty())
    return false;
  Clock uses = lastUses(a);
  const Clock &start = clocks[b.writer];
  for (unsigned s = 0; s < numStreams; ++s)
    if (uses[s] > start[s])
      return false;
  return true;
}

/// Per stream the count after which nobody of that stream touches the buffer any more.
Clock WaitGraph::lastUses(const Buffer &buffer) const {
  Clock uses = unknownClock();
  for (unsigned f : buffer.touches)
    uses[streamOf(f)] = std::max<int64_t>(uses[streamOf(f)], positions[f] + 1);
  return uses;
}

void WaitGraph::require(std::vector<Clock> &needed, unsigned firing, const Clock &clock) const {
  join(needed[firing], clock);
}

void WaitGraph::addStepBoundary() {
  auto shifted = [&](Clock clock, int64_t steps) {
    for (unsigned s = 0; s < numStreams; ++s)
      if (clock[s] != unknown)
        clock[s] -= steps * static_cast<int64_t>(order[s].size());
    return clock;
  };
  // Two rounds: what a stream learned a step ago, and two steps ago.
  for (int round = 0; round < 2; ++round)
    propagate(endOfStep());

  // The last uses of all bytes of the arena, by elementary intervals.
  std::map<int64_t, Clock> uses;
  auto isPacked = [](const Buffer &b) {
    return !b.isState && !b.isExchanged && b.bytes > 0 && !b.touches.empty();
  };
  for (const Buffer &buffer : cls.buffers)
    if (isPacked(buffer)) {
      uses.try_emplace(buffer.offset, unknownClock());
      uses.try_emplace(buffer.offset + buffer.bytes, unknownClock());
    }
  auto forInterval = [&](const Buffer &buffer, auto visit) {
    for (auto it = uses.find(buffer.offset); it->first < buffer.offset + buffer.bytes; ++it)
      visit(it->second);
  };
  for (const Buffer &buffer : cls.buffers)
    if (isPacked(buffer))
      forInterval(buffer, [&](Clock &clock) { join(clock, lastUses(buffer)); });

  std::vector<Clock> needed(cls.firings.size(), unknownClock());
  for (const Buffer &buffer : cls.buffers) {
    if (buffer.isState) {
      if (buffer.writer < 0)
        continue;
      require(needed, buffer.writer, shifted(lastUses(buffer), 1));
      Clock written = unknownClock();
      written[streamOf(buffer.writer)] = positions[buffer.writer] + 1;
      for (unsigned f : buffer.touches)
        require(needed, f, shifted(written, 1));
    } else if (buffer.writer >= 0 && buffer.isExchanged) {
      require(needed, buffer.writer, shifted(lastUses(buffer), 2));
    } else if (buffer.writer >= 0 && isPacked(buffer)) {
      forInterval(buffer, [&](Clock &clock) { require(needed, buffer.writer, shifted(clock, 1)); });
    }
  }
  for (unsigned f : sequence) {
    unsigned own = streamOf(f);
    Clock &clock = clocks[f];
    if (positions[f] > 0)
      join(clock, afterwards(order[own][positions[f] - 1]));
    for (Wait wait : waitsOf[f])
      join(clock, afterwards(order[wait.stream][wait.count - 1]));
    for (unsigned s = 0; s < numStreams; ++s) {
      if (s == own || needed[f][s] <= clock[s])
        continue;
      waitsOf[f].push_back({s, needed[f][s]});
      clock[s] = needed[f][s];
    }
  }
}
