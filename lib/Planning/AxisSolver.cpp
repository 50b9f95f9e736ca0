// Chooses one row per node along one mesh axis.
#include "lib/Planning/AxisSolver.h"
#include <deque>

using namespace mlir;
using namespace flow;

namespace {
class Solver {
public:
  explicit Solver(const AxisProblem &problem)
      : problem(problem), graph(problem.graph), choice(problem.rows.size(), 0) {}

  /// From two starts: taking a reduce-scatter where it is cheaper at the spot, and
  /// combining wholly, which often is cheaper further on.
  std::vector<unsigned> run() {
    std::vector<unsigned> best;
    double bestCost = 0;
    for (bool whole : {false, true}) {
      choice.assign(choice.size(), 0);
      sweepForward(whole);
      constexpr int kMaxSweeps = 8;
      for (int sweep = 0; sweep < kMaxSweeps && improve(); ++sweep)
        ;
      double cost = totalCost();
      if (best.empty() || cost < bestCost - 1e-4) {
        best = choice;
        bestCost = cost;
      }
    }
    return best;
  }

private:
  static constexpr double kTolerance = 1e-6;

  SbpAttr inputState(unsigned node, unsigned i) const { return rowOf(node).inputs[i]; }
  const Signature &rowOf(unsigned node) const { return problem.rows[node][choice[node]]; }

  SbpAttr stateOf(const ProgramValue &v) const { return rowOf(v.producer).outputs[v.output]; }

  /// Boxings of one value: one per distinct target. What is whole already can be
  /// sliced for nothing.
  double valueCost(unsigned id) const {
    const ProgramValue &v = graph.values[id];
    SbpAttr from = stateOf(v);
    SmallVector<SbpAttr, 4> targets;
    bool becomesWhole = false;
    for (auto [node, input] : v.users) {
      if (skipUnplaced && !placed[node])
        continue;
      SbpAttr to = inputState(node, input);
      if (to == from || llvm::is_contained(targets, to))
        continue;
      targets.push_back(to);
      becomesWhole |= to.isBroadcast();
      if (combineWhole && from.isPartial() && to.isSplit())
        targets.back() = SbpAttr::broadcast(to.getContext());
    }
    double cost = 0;
    for (SbpAttr to : targets)
      cost += becomesWhole && !to.isBroadcast()
                  ? problem.model.localBoxing
                  : boxingCost(problem.model, v.type, from, to, problem.ranks);
    return cost * v.executions;
  }

  double nodeCost(unsigned node) const {
    const ProgramNode &n = graph.nodes[node];
    double cost = problem.work[node][choice[node]];
    SmallVector<unsigned, 8> seen;
    for (unsigned v : llvm::concat<const unsigned>(n.inputs, n.outputs)) {
      if (llvm::is_contained(seen, v))
        continue;
      seen.push_back(v);
      cost += valueCost(v);
    }
    return cost;
  }

  double totalCost() const {
    double cost = 0;
    for (unsigned id = 0; id < graph.values.size(); ++id)
      cost += valueCost(id);
    for (unsigned node = 0; node < choice.size(); ++node)
      cost += problem.work[node][choice[node]];
    return cost;
  }

  void sweepForward(bool whole) {
    combineWhole = whole;
    placed.assign(choice.size(), false);
    skipUnplaced = true;
    for (unsigned node = 0; node < choice.size(); ++node) {
      placed[node] = true;
      choice[node] = cheapestRow(node, std::nullopt);
    }
    skipUnplaced = combineWhole = false;
  }

  /// Edges between the two nodes whose ends differ.
  unsigned mismatches(unsigned node, unsigned other) const {
    unsigned count = 0;
    for (unsigned id : graph.nodes[node].inputs)
      if (graph.values[id].producer == other)
        for (auto [user, input] : graph.values[id].users)
          count += user == node && inputState(node, input) != stateOf(graph.values[id]);
    for (unsigned id : graph.nodes[node].outputs)
      for (auto [user, input] : graph.values[id].users)
        count += user == other && inputState(other, input) != stateOf(graph.values[id]);
    return count;
  }

  /// Among rows of equal cost: the one that agrees with `origin`, then the present
  /// one, then the first.
  unsigned cheapestRow(unsigned node, std::optional<unsigned> origin) {
    unsigned present = choice[node], best = present;
    double bestCost = nodeCost(node);
    unsigned bestMismatches = origin ? mismatches(node, *origin) : 0;
    for (unsigned row = 0; row < problem.rows[node].size(); ++row) {
      if (row == present)
        continue;
      choice[node] = row;
      double cost = nodeCost(node);
      double slack = kTolerance * (1 + std::abs(bestCost));
      unsigned count = origin && cost < bestCost + slack ? mismatches(node, *origin) : 0;
      bool better =
          cost < bestCost - slack || (cost < bestCost + slack && origin && count < bestMismatches);
      if (!better)
        continue;
      best = row;
      bestCost = cost;
      bestMismatches = count;
    }
    choice[node] = present;
    return best;
  }

  SmallVector<unsigned> neighbours(unsigned node) const {
    SmallVector<unsigned> result;
    for (unsigned id : graph.nodes[node].inputs)
      result.push_back(graph.values[id].producer);
    for (unsigned id :
         llvm::concat<const unsigned>(graph.nodes[node].outputs, graph.nodes[node].inputs))
      for (auto [user, input] : graph.values[id].users)
        result.push_back(user);
    return result;
  }

  double change(unsigned node, unsigned row) {
    double before = nodeCost(node);
    choice[node] = row;
    return nodeCost(node) - before;
  }

  bool tryMove(unsigned seed, unsigned row) {
    constexpr unsigned kMaxChanges = 400;
    SmallVector<std::pair<unsigned, unsigned>> journal;
    llvm::DenseMap<unsigned, unsigned> changes;
    std::deque<std::pair<unsigned, unsigned>> queue; // node, origin
    double delta = 0;
    auto apply = [&](unsigned node, unsigned newRow) {
      journal.push_back({node, choice[node]});
      ++changes[node];
      delta += change(node, newRow);
      for (unsigned n : neighbours(node))
        if (n != node)
          queue.push_back({n, node});
    };
    apply(seed, row);
    while (!queue.empty() && journal.size() < kMaxChanges) {
      auto [node, origin] = queue.front();
      queue.pop_front();
      if (node == seed || changes.lookup(node) >= 2)
        continue;
      unsigned best = cheapestRow(node, origin);
      if (best != choice[node])
        apply(node, best);
    }
    if (delta < -1e-4)
      return true;
    for (auto [node, old] : llvm::reverse(journal))
      choice[node] = old;
    return false;
  }

  bool improve() {
    bool improved = false;
    for (unsigned node = 0; node < choice.size(); ++node) {
      // Only a node that pays can seed a gain.
      if (nodeCost(node) < kTolerance)
        continue;
      for (unsigned row = 0; row < problem.rows[node].size(); ++row)
        if (row != choice[node])
          improved |= tryMove(node, row);
    }
    return improved;
  }

  const AxisProblem &problem;
  const ProgramGraph &graph;
  std::vector<unsigned> choice;
  std::vector<bool> placed;
  bool skipUnplaced = false, combineWhole = false;
};
} // namespace

std::vector<unsigned> flow::solveAxis(const AxisProblem &problem) {
  return Solver(problem).run();
}
