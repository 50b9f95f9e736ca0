// The cheapest path between nd-SBP states: Dijkstra over what the axes may be on
// the way (as before, as after, or B), edges are single steps on any set of axes.
#include "dialects/Flow/Rules/BoxingPath.h"
#include "dialects/Flow/Rules/Shards.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace flow;

StringRef flow::stringifyBoxingKind(BoxingKind kind) {
  switch (kind) {
  case BoxingKind::Relabel:
    return "relabel";
  case BoxingKind::Slice:
    return "slice";
  case BoxingKind::KeepPart:
    return "keep_part";
  case BoxingKind::AllReduce:
    return "all_reduce";
  case BoxingKind::ReduceScatter:
    return "reduce_scatter";
  case BoxingKind::AllGather:
    return "all_gather";
  case BoxingKind::AllToAll:
    return "all_to_all";
  case BoxingKind::Send:
    return "send";
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Legality
//===----------------------------------------------------------------------===//

/// Whether an axis outside `axes` splits, inside of `axis`, the same dim: its
/// shares depend on what `axis` does, so `axis` cannot change alone.
static bool hasInnerSplit(DistType type, ArrayRef<size_t> axes, size_t axis, int64_t dim) {
  for (size_t inner = axis + 1; inner < type.getSbp().size(); ++inner)
    if (!llvm::is_contained(axes, inner) && type.getSbp()[inner].isSplit(dim))
      return true;
  return false;
}

/// Whether an axis outside `axes` combines, inside of `axis`, by another monoid.
static bool hasInnerMonoid(DistType type, ArrayRef<size_t> axes, size_t axis, Monoid monoid) {
  for (size_t inner = axis + 1; inner < type.getSbp().size(); ++inner) {
    SbpAttr entry = type.getSbp()[inner];
    if (!llvm::is_contained(axes, inner) && entry.isPartial() && entry.getMonoid() != monoid)
      return true;
  }
  return false;
}

/// Whether units cut alike: every rank keeps its elements. `axes` is one axis.
static bool cutAlike(DistType from, DistType to, size_t axis) {
  SbpAttr x = from.getSbp()[axis], y = to.getSbp()[axis];
  if (!x.isSplit() || !y.isSplit(x.getDim()))
    return false;
  MeshAttr mesh = from.getMesh();
  int64_t dim = x.getDim(), ranks = mesh.getAxisSizes()[axis];
  SmallVector<int64_t> extents{from.getShape()[dim]}; // that outer axes leave
  for (size_t outer = 0; outer < axis; ++outer)
    if (SbpAttr entry = from.getSbp()[outer]; entry.isSplit(dim)) {
      SmallVector<int64_t> inner;
      for (int64_t extent : extents)
        for (const SplitRun &run : splitRuns(extent, mesh.getAxisSizes()[outer], entry.getUnit()))
          inner.push_back(run.size);
      llvm::sort(inner);
      inner.erase(llvm::unique(inner), inner.end());
      extents = std::move(inner);
    }
  return llvm::all_of(extents, [&](int64_t extent) {
    auto a = splitRuns(extent, ranks, x.getUnit()), b = splitRuns(extent, ranks, y.getUnit());
    auto pieces = [](ArrayRef<SplitRun> runs) { // runs of equal size merged
      SmallVector<std::pair<int64_t, int64_t>> out;
      for (const SplitRun &run : runs)
        if (!out.empty() && out.back().second == run.size)
          out.back().first += run.count;
        else
          out.emplace_back(run.count, run.size);
      return out;
    };
    return pieces(a) == pieces(b);
  });
}

bool flow::isLegalBoxingStep(const BoxingStep &step) {
  DistType from = step.from, to = step.to;
  bool sameStage = from.getMesh() == to.getMesh();
  if (step.kind == BoxingKind::Send)
    return !sameStage && from.getSbp() == to.getSbp();
  if (!sameStage || step.axes.empty())
    return false;
  ArrayRef<size_t> axes = step.axes;
  // An axis of one rank has nothing to combine or to move.
  if (step.kind != BoxingKind::Relabel &&
      llvm::any_of(axes, [&](size_t axis) { return from.getMesh().getAxisSizes()[axis] == 1; }))
    return false;
  auto entries = [&](DistType type) {
    return llvm::map_range(axes, [type](size_t axis) { return type.getSbp()[axis]; });
  };
  auto all = [&](DistType type, auto predicate) { return llvm::all_of(entries(type), predicate); };
  auto isS = [](SbpAttr s) { return s.isSplit(); };
  auto isB = [](SbpAttr s) { return s.isBroadcast(); };
  SbpAttr x0 = from.getSbp()[axes[0]], y0 = to.getSbp()[axes[0]];
  auto samePartial = [](SbpAttr first) {
    return [first](SbpAttr s) { return first.isPartial() && s == first; };
  };
  // A split may come or go only where no other axis cuts its pieces further.
  auto freeSplits = [&](DistType type) {
    return llvm::all_of(axes, [&](size_t axis) {
      SbpAttr s = type.getSbp()[axis];
      return !s.isSplit() || !hasInnerSplit(type, axes, axis, s.getDim());
    });
  };
  // Parts are combined from the inside out.
  auto freeParts = [&](DistType type, Monoid monoid) {
    return llvm::none_of(axes,
                         [&](size_t axis) { return hasInnerMonoid(type, axes, axis, monoid); });
  };
  switch (step.kind) {
  case BoxingKind::Relabel:
    return llvm::all_of(axes, [&](size_t axis) {
      return from.getMesh().getAxisSizes()[axis] == 1 ||
             (axes.size() == 1 && cutAlike(from, to, axis) && freeSplits(from));
    });
  case BoxingKind::Slice:
    return all(from, isB) && all(to, isS) && freeSplits(to);
  case BoxingKind::KeepPart:
    return (all(from, isB) || all(from, isS)) && all(to, samePartial(y0)) && freeSplits(from) &&
           freeParts(to, y0.getMonoid());
  case BoxingKind::AllReduce:
    return all(from, samePartial(x0)) && all(to, isB) && freeParts(from, x0.getMonoid());
  case BoxingKind::ReduceScatter:
    return all(from, samePartial(x0)) && all(to, isS) && freeSplits(to) &&
           freeParts(from, x0.getMonoid());
  case BoxingKind::AllGather:
    return all(from, isS) && all(to, isB) && freeSplits(from);
  case BoxingKind::AllToAll:
    return all(from, isS) && all(to, isS) && freeSplits(from) && freeSplits(to) &&
           llvm::none_of(entries(from), [&](SbpAttr x) {
             return llvm::any_of(entries(to), [&](SbpAttr y) { return y.isSplit(x.getDim()); });
           });
  case BoxingKind::Send:
    break;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

/// Bytes that all ranks together hold.
static int64_t heldBytes(DistType type) {
  unsigned width = isa<IndexType>(type.getElementType()) ? 64 : 8;
  if (auto complex = dyn_cast<ComplexType>(type.getElementType()))
    width = 2 * complex.getElementType().getIntOrFloatBitWidth();
  else if (type.getElementType().isIntOrFloat())
    width = type.getElementType().getIntOrFloatBitWidth();
  int64_t bytes = llvm::divideCeil(width, 8);
  for (int64_t extent : type.getShape())
    bytes *= extent;
  for (auto [axis, entry] : llvm::enumerate(type.getSbp()))
    if (!entry.isSplit())
      bytes *= type.getMesh().getAxisSizes()[axis];
  return bytes;
}

int64_t BoxingStep::totalBytes() const {
  int64_t group = 1;
  for (size_t axis : axes)
    group *= from.getMesh().getAxisSizes()[axis];
  int64_t held = heldBytes(from);
  switch (kind) {
  case BoxingKind::Relabel:
  case BoxingKind::Slice:
  case BoxingKind::KeepPart:
    return 0;
  case BoxingKind::AllReduce:
    return 2 * (group - 1) * (held / group);
  case BoxingKind::ReduceScatter:
    return (group - 1) * (held / group);
  case BoxingKind::AllGather:
    return (group - 1) * held;
  case BoxingKind::AllToAll:
    return held * (group - 1) / group;
  case BoxingKind::Send:
    return held;
  }
  return 0;
}

static double secondsOf(const BoxingStep &step, const BoxingCosts &costs) {
  double ranks = step.from.getMesh().getNumRanks();
  // Local steps are nearly free, but fewer of them are better.
  double seconds = step.kind == BoxingKind::Relabel ? 1e-12 : 1e-9;
  if (step.moves())
    seconds += costs.latency + step.totalBytes() / ranks * costs.seconds_per_byte;
  if (step.kind == BoxingKind::Slice || step.kind == BoxingKind::KeepPart)
    seconds += heldBytes(step.to) / ranks * costs.local_seconds_per_byte;
  return seconds;
}

int64_t BoxingPath::totalBytes() const {
  int64_t bytes = 0;
  for (const BoxingStep &step : steps)
    bytes += step.totalBytes();
  return bytes;
}

std::string BoxingPath::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(
      steps, os,
      [&](const BoxingStep &step) {
        os << stringifyBoxingKind(step.kind);
        if (step.kind == BoxingKind::Send) {
          os << " to stage " << step.to.getMesh().getStage();
          return;
        }
        os << " [";
        llvm::interleaveComma(step.axes, os, [&](size_t axis) {
          os << step.from.getMesh().getAxisNames()[axis].getValue();
        });
        os << "] -> " << stringifySbp(step.to.getSbp());
      },
      "; ");
  return text;
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

namespace {
struct Node {
  double seconds;
  std::optional<BoxingStep> last;
  bool done = false;
};

class Search {
public:
  Search(DistType from, DistType to, const BoxingCosts &costs) : from(from), to(to), costs(costs) {
    SbpAttr b = SbpAttr::broadcast(from.getContext());
    for (auto [x, y] : llvm::zip(from.getSbp(), to.getSbp())) {
      SmallVector<SbpAttr> &choices = options.emplace_back();
      for (SbpAttr entry : {x, y, b})
        if (!llvm::is_contained(choices, entry))
          choices.push_back(entry);
    }
  }

  BoxingPath run() {
    nodes[from] = Node{0, std::nullopt};
    while (DistType at = nearest()) {
      nodes[at].done = true;
      if (at == to)
        break;
      expand(at);
    }
    BoxingPath path;
    path.seconds = nodes[to].seconds;
    for (DistType at = to; at != from; at = path.steps.back().from)
      path.steps.push_back(*nodes[at].last);
    std::reverse(path.steps.begin(), path.steps.end());
    return path;
  }

private:
  DistType nearest() {
    DistType best;
    double seconds = 0;
    for (auto &[type, node] : nodes)
      if (!node.done && (!best || node.seconds < seconds)) {
        best = type;
        seconds = node.seconds;
      }
    return best;
  }

  void relax(BoxingStep step) {
    if (!isLegalBoxingStep(step))
      return;
    double seconds = nodes[step.from].seconds + secondsOf(step, costs);
    auto [it, isNew] = nodes.try_emplace(step.to, Node{seconds, step});
    if (!isNew && seconds < it->second.seconds)
      it->second = Node{seconds, step};
  }

  void expand(DistType at) {
    if (at.getMesh() != to.getMesh())
      relax({BoxingKind::Send,
             {},
             at,
             DistType::get(at.getContext(), at.getShape(), at.getElementType(), to.getMesh(),
                           at.getSbp())});
    SmallVector<SbpAttr> next(at.getSbp());
    change(at, 0, {}, next);
  }

  /// Tries every change of the axes from `axis` on.
  void change(DistType at, size_t axis, SmallVector<size_t> axes, SmallVector<SbpAttr> &next) {
    if (axis == next.size()) {
      if (axes.empty())
        return;
      DistType result = at.withSbp(next);
      for (BoxingKind kind :
           {BoxingKind::Relabel, BoxingKind::Slice, BoxingKind::KeepPart, BoxingKind::AllReduce,
            BoxingKind::ReduceScatter, BoxingKind::AllGather, BoxingKind::AllToAll})
        relax({kind, axes, at, result});
      return;
    }
    change(at, axis + 1, axes, next);
    axes.push_back(axis);
    for (SbpAttr entry : options[axis])
      if (entry != at.getSbp()[axis]) {
        next[axis] = entry;
        change(at, axis + 1, axes, next);
      }
    next[axis] = at.getSbp()[axis];
  }

  DistType from, to;
  const BoxingCosts &costs;
  SmallVector<SmallVector<SbpAttr>> options;
  llvm::MapVector<DistType, Node> nodes;
};
} // namespace

BoxingPath flow::findBoxingPath(DistType from, DistType to, const BoxingCosts &costs) {
  return Search(from, to, costs).run();
}
