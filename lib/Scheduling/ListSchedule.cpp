// Greedy list scheduling.
#include "lib/Scheduling/ListSchedule.h"
#include <queue>
#include <set>

using namespace flow;
using namespace flow::scheduling;

Orders scheduling::listSchedule(const StepGraph &graph, llvm::ArrayRef<double> priority) {
  size_t n = graph.transitions.size();
  Orders orders;
  orders.streams.resize(graph.classes.size());
  orders.startNs.assign(n, -1);
  orders.endNs.assign(n, -1);
  std::vector<unsigned> pending(n);
  for (auto &next : graph.successors)
    for (unsigned to : next)
      ++pending[to];
  auto sooner = [&](unsigned a, unsigned b) {
    return priority[a] != priority[b] ? priority[a] > priority[b] : a < b;
  };
  std::set<unsigned, decltype(sooner)> ready(sooner);
  for (unsigned i = 0; i < n; ++i)
    if (!pending[i])
      ready.insert(i);
  std::vector<std::array<bool, numStreams>> busy(graph.classes.size());
  auto streamOf = [&](Member member) {
    return static_cast<unsigned>(graph.classes[member.cls].firings[member.firing].stream);
  };
  using Event = std::pair<int64_t, unsigned>;
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events;
  int64_t now = 0;
  size_t finished = 0;
  while (true) {
    for (auto it = ready.begin(); it != ready.end();) {
      const Transition &t = graph.transitions[*it];
      if (llvm::any_of(t.members,
                       [&](Member member) { return busy[member.cls][streamOf(member)]; })) {
        ++it;
        continue;
      }
      for (Member member : t.members) {
        busy[member.cls][streamOf(member)] = true;
        orders.streams[member.cls][streamOf(member)].push_back(member.firing);
      }
      orders.sequence.push_back(*it);
      orders.startNs[*it] = now;
      orders.endNs[*it] = now + t.costNs;
      events.push({orders.endNs[*it], *it});
      it = ready.erase(it);
    }
    if (events.empty())
      break;
    now = events.top().first;
    while (!events.empty() && events.top().first == now) {
      unsigned i = events.top().second;
      events.pop();
      ++finished;
      for (Member member : graph.transitions[i].members)
        busy[member.cls][streamOf(member)] = false;
      for (unsigned to : graph.successors[i])
        if (!--pending[to])
          ready.insert(to);
    }
  }
  orders.timeNs = now;
  orders.isComplete = finished == n;
  return orders;
}
