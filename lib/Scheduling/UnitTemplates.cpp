// Templates of units, and the priorities that follow from them.
#include "lib/Scheduling/UnitTemplates.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <algorithm>
#include <limits>
#include <random>

using namespace flow;
using namespace flow::scheduling;
using actor::Phase;
using actor::Rate;

/// All forward units, then all backward units.
static std::vector<Unit> orderGpipe(unsigned, unsigned, unsigned microBatches) {
  std::vector<Unit> order;
  for (bool isBackward : {false, true})
    for (unsigned m = 0; m < microBatches; ++m)
      order.push_back({isBackward, m});
  return order;
}

/// Stage s runs stages - s - 1 forward units ahead, then one forward and one
/// backward unit in turn (PipeDream-Flush).
static std::vector<Unit> orderOneForwardOneBackward(unsigned stage, unsigned stages,
                                                    unsigned microBatches) {
  std::vector<Unit> order;
  unsigned ahead = std::min(microBatches, stages - stage - 1);
  for (unsigned m = 0; m < ahead; ++m)
    order.push_back({false, m});
  for (unsigned m = ahead; m < microBatches; ++m) {
    order.push_back({false, m});
    order.push_back({true, m - ahead});
  }
  for (unsigned m = microBatches - ahead; m < microBatches; ++m)
    order.push_back({true, m});
  return order;
}

llvm::ArrayRef<UnitTemplate> scheduling::unitTemplates() {
  static constexpr UnitTemplate table[] = {{"1f1b", orderOneForwardOneBackward},
                                           {"gpipe", orderGpipe}};
  return table;
}

const UnitTemplate *scheduling::findUnitTemplate(llvm::StringRef name) {
  for (const UnitTemplate &units : unitTemplates())
    if (units.name == name)
      return &units;
  return nullptr;
}

unsigned scheduling::maxInFlight(llvm::ArrayRef<Unit> order) {
  int live = 0, peak = 0;
  for (const Unit &unit : order) {
    live += unit.isBackward ? -1 : 1;
    peak = std::max(peak, live);
  }
  return peak;
}

/// Whether a transition belongs to a unit, and which part it is.
static bool isUnit(const StepGraph &graph, const Transition &t) {
  return (t.rate == Rate::Micro || graph.microBatches == 1) &&
         (t.phase == Phase::Forward || t.phase == Phase::Backward);
}

void scheduling::limitInFlight(StepGraph &graph, const UnitTemplate &units) {
  for (unsigned c = 0; c < graph.classes.size(); ++c) {
    ClassGraph &cls = graph.classes[c];
    std::vector<Unit> order = units.order(cls.stage, graph.stages, graph.microBatches);
    unsigned limit = maxInFlight(order);
    if (limit >= graph.microBatches)
      continue;
    std::vector<std::vector<unsigned>> forward(graph.microBatches), backward(graph.microBatches);
    for (const Firing &firing : cls.firings) {
      const Transition &t = graph.transitions[firing.transition];
      if (t.rate != Rate::Micro || firing.stream != actor::Stream::Compute)
        continue;
      if (t.phase == Phase::Forward)
        forward[firing.microBatch].push_back(firing.transition);
      if (t.phase == Phase::Backward)
        backward[firing.microBatch].push_back(firing.transition);
    }
    std::vector<unsigned> released;
    unsigned taken = 0;
    for (const Unit &unit : order) {
      if (unit.isBackward) {
        released.push_back(unit.microBatch);
        continue;
      }
      if (taken++ < limit)
        continue;
      unsigned before = released[taken - 1 - limit];
      if (backward[before].empty() || forward[unit.microBatch].empty())
        continue;
      // A transition without members: all of one unit before all of another.
      unsigned gate = graph.transitions.size();
      graph.transitions.emplace_back();
      graph.successors.emplace_back();
      for (unsigned t : backward[before])
        graph.addEdge(t, gate);
      for (unsigned t : forward[unit.microBatch])
        graph.addEdge(gate, t);
    }
  }
}

void scheduling::delayReductions(StepGraph &graph) {
  std::vector<unsigned> order = graph.topologicalOrder();
  // Whether everything that follows belongs to the update.
  std::vector<char> onlyUpdate(graph.transitions.size(), true);
  for (unsigned i : llvm::reverse(order))
    for (unsigned next : graph.successors[i]) {
      const Transition &t = graph.transitions[next];
      bool isLate = t.phase == Phase::Update || t.phase == Phase::Other || t.isExchange;
      onlyUpdate[i] = onlyUpdate[i] && onlyUpdate[next] && isLate && !t.members.empty();
    }
  for (unsigned i = 0; i < graph.transitions.size(); ++i) {
    const Transition &t = graph.transitions[i];
    if (!t.isExchange || t.phase != Phase::Backward || !onlyUpdate[i])
      continue;
    for (Member member : t.members) {
      ClassGraph &cls = graph.classes[member.cls];
      for (unsigned f = 0; f < cls.firings.size(); ++f) {
        const Firing &firing = cls.firings[f];
        if (firing.stream != actor::Stream::Compute ||
            graph.transitions[firing.transition].phase != Phase::Backward)
          continue;
        // A backward kernel that needs the reduced value stays behind it.
        if (onlyUpdate[firing.transition] &&
            llvm::is_contained(graph.successors[i], firing.transition))
          continue;
        cls.predecessors[member.firing].push_back(f);
        graph.addEdge(firing.transition, i);
      }
    }
  }
}

std::vector<double> scheduling::prioritize(const StepGraph &graph, const UnitTemplate &units) {
  size_t n = graph.transitions.size();
  std::vector<unsigned> order = graph.topologicalOrder();
  std::vector<double> upward(n);
  double longest = 1;
  for (unsigned i : llvm::reverse(order)) {
    for (unsigned next : graph.successors[i])
      upward[i] = std::max(upward[i], upward[next]);
    upward[i] += graph.transitions[i].costNs + 1;
    longest = std::max(longest, upward[i]);
  }
  std::vector<std::vector<double>> position(graph.stages * 2,
                                            std::vector<double>(graph.microBatches));
  for (unsigned s = 0; s < graph.stages; ++s)
    for (auto [k, unit] : llvm::enumerate(units.order(s, graph.stages, graph.microBatches)))
      position[2 * s + unit.isBackward][unit.microBatch] = k;
  // What belongs to no unit goes with the first unit that needs it, or last.
  constexpr double last = 1e9;
  std::vector<double> at(n, last);
  for (unsigned i : llvm::reverse(order)) {
    const Transition &t = graph.transitions[i];
    if (!t.members.empty() && isUnit(graph, t) &&
        graph.classes[t.members[0].cls].firings[t.members[0].firing].stream != actor::Stream::Io) {
      at[i] = position[2 * t.stage + (t.phase == Phase::Backward)][t.microBatch];
      continue;
    }
    for (unsigned next : graph.successors[i])
      at[i] = std::min(at[i], at[next]);
  }
  std::vector<double> priority(n);
  for (size_t i = 0; i < n; ++i)
    priority[i] = -at[i] + 0.5 * upward[i] / longest;
  return priority;
}

std::vector<double> scheduling::randomPriorities(const StepGraph &graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> priority(graph.transitions.size());
  for (double &value : priority)
    value = static_cast<double>(random() >> 11);
  return priority;
}
