// Groups grow from contractions (pointwise consumers join) and from runs of row
// ops. A merge is refused if a third group lies on a path between the two.
#include "lib/Kernels/Fusion/Grouping.h"
#include "dialects/Flow/IR/FlowAttrs.h"
#include "lib/Kernels/Fusion/OpKinds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include <queue>

using namespace mlir;
using namespace flow;

/// Bounds the registers that a fused chain needs and the size of one function.
static constexpr unsigned kMaxOpsPerKernel = 48;

/// A slice of leading dims at a loop's position: contiguous, so it stays in the
/// caller as an offset.
static bool isMicroBatchSlice(Operation *op) {
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  if (!slice || !op->getParentOfType<scf::ForOp>() || !slice.hasUnitStride())
    return false;
  ArrayRef<int64_t> offsets = slice.getStaticOffsets(), sizes = slice.getStaticSizes();
  ArrayRef<int64_t> shape = slice.getSourceType().getShape();
  if (offsets.empty() || !ShapedType::isDynamic(offsets[0]) || sizes[0] != 1)
    return false;
  auto loop = op->getParentOfType<scf::ForOp>();
  if (slice.getDynamicOffset(0) != loop.getInductionVar())
    return false;
  for (unsigned d = 1; d < shape.size(); ++d)
    if (offsets[d] != 0 || sizes[d] != shape[d])
      return false;
  return true;
}

static bool hasTensorResult(Operation *op) {
  return llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>);
}

OpRole flow::roleOf(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return OpRole::Fixed;
  if (matchPattern(op, m_Constant()))
    return OpRole::Cheap;
  if (isMicroBatchSlice(op))
    return OpRole::Fixed;
  if (isa<tensor::EmptyOp, tensor::ExtractSliceOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
          tensor::CastOp, linalg::FillOp>(op))
    return OpRole::Cheap;
  StringRef dialect = op->getName().getDialectNamespace();
  if (!hasTensorResult(op))
    return op->getNumRegions() == 0 && isPure(op) ? OpRole::Cheap : OpRole::Fixed;
  if (dialect == "linalg" || dialect == "tensor" || dialect == "arith" || dialect == "math")
    return OpRole::Compute;
  return OpRole::Fixed;
}

Grouping::Grouping(Block &block) {
  for (Operation &op : block)
    if (roleOf(&op) != OpRole::Cheap)
      addNode(&op);
  // Cheap tensors that a fixed op reads need a kernel that writes them.
  llvm::SetVector<Operation *> wanted;
  for (Operation &op : block)
    if (roleOf(&op) == OpRole::Cheap && hasTensorResult(&op) && !isa<tensor::EmptyOp>(op) &&
        llvm::any_of(op.getUsers(), [](Operation *user) { return roleOf(user) == OpRole::Fixed; }))
      wanted.insert(&op);
  for (Operation *op : wanted)
    addNode(op);

  preds.resize(nodes.size());
  succs.resize(nodes.size());
  readByFixed.resize(nodes.size());
  phases.resize(nodes.size());
  std::optional<unsigned> lastEffect;
  // Program order of the block, so that phases flow from producers to readers.
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, nodes.size()));
  llvm::sort(order, [&](unsigned a, unsigned b) { return nodes[a]->isBeforeInBlock(nodes[b]); });
  for (unsigned n : order) {
    Operation *op = nodes[n];
    SmallVector<unsigned> producers;
    for (Value operand : op->getOperands())
      producersOf(operand, producers);
    for (Region &region : op->getRegions())
      region.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          producersOf(operand, producers);
      });
    bool fixed = roleOf(op) == OpRole::Fixed;
    // Collectives keep their order.
    if (fixed && !isMemoryEffectFree(op)) {
      if (lastEffect)
        producers.push_back(*lastEffect);
      lastEffect = n;
    }
    llvm::sort(producers);
    producers.erase(llvm::unique(producers), producers.end());
    auto phase = op->getAttrOfType<PhaseAttr>("flow.phase");
    for (unsigned p : producers) {
      if (p == n)
        continue;
      preds[n].push_back(p);
      succs[p].push_back(n);
      if (fixed && !op->hasTrait<OpTrait::IsTerminator>())
        readByFixed[p] = true;
      // An op without a tag belongs to the latest phase that it reads.
      auto from = dyn_cast_or_null<PhaseAttr>(phases[p]);
      if (!op->hasAttr("flow.phase") && from && (!phase || phase.getValue() < from.getValue()))
        phase = from;
    }
    phases[n] = phase;
    Group group;
    group.nodes.push_back(n);
    group.fixed = fixed;
    groupOf[n] = groups.size();
    groups.push_back(std::move(group));
  }
}

void Grouping::addNode(Operation *op) {
  numberOf[op] = nodes.size();
  nodes.push_back(op);
  groupOf.push_back(0);
}

void Grouping::producersOf(Value value, SmallVectorImpl<unsigned> &out) {
  Operation *def = value.getDefiningOp();
  if (!def)
    return;
  auto it = numberOf.find(def);
  if (it != numberOf.end()) {
    out.push_back(it->second);
    return;
  }
  if (roleOf(def) == OpRole::Cheap)
    for (Value operand : def->getOperands())
      producersOf(operand, out);
}

/// Is there a path from group `from` to group `to` through at least one other?
bool Grouping::pathAvoiding(unsigned from, unsigned to) {
  llvm::DenseSet<unsigned> seen;
  SmallVector<unsigned> work;
  auto push = [&](unsigned group, bool first) {
    for (unsigned n : groups[group].nodes)
      for (unsigned s : succs[n]) {
        unsigned g = groupOf[s];
        if (g == group || (first && g == to))
          continue;
        if (seen.insert(g).second)
          work.push_back(g);
      }
  };
  push(from, true);
  while (!work.empty()) {
    unsigned g = work.pop_back_val();
    if (g == to)
      return true;
    push(g, false);
  }
  return false;
}

bool Grouping::mayMerge(unsigned a, unsigned b) {
  return !pathAvoiding(a, b) && !pathAvoiding(b, a);
}

void Grouping::merge(unsigned into, unsigned from) {
  for (unsigned n : groups[from].nodes)
    groupOf[n] = into;
  groups[into].nodes.append(groups[from].nodes);
  groups[from].nodes.clear();
}

static bool identityRead(linalg::GenericOp op, llvm::function_ref<bool(Value)> member) {
  for (OpOperand *input : op.getDpsInputOperands())
    if (member(input->get()) && !op.getMatchingIndexingMap(input).isIdentity())
      return false;
  return true;
}

void Grouping::addEpilogues() {
  for (unsigned n = 0; n < nodes.size(); ++n) {
    auto root = dyn_cast<linalg::LinalgOp>(nodes[n]);
    if (!root || !isTileContraction(root))
      continue;
    unsigned g = groupOf[n];
    groups[g].contraction = true;
    if (readByFixed[n])
      continue;
    auto type = cast<RankedTensorType>(root->getResult(0).getType());
    for (unsigned i = 0; i < groups[g].nodes.size(); ++i) {
      SmallVector<unsigned> readers(succs[groups[g].nodes[i]]);
      llvm::sort(readers,
                 [&](unsigned a, unsigned b) { return nodes[a]->isBeforeInBlock(nodes[b]); });
      for (unsigned r : readers) {
        auto consumer = dyn_cast<linalg::GenericOp>(nodes[r]);
        if (!consumer || groups[groupOf[r]].nodes.size() != 1 || groupOf[r] == g ||
            groups[g].nodes.size() >= kMaxOpsPerKernel || phases[r] != phases[n])
          continue;
        if (!isPointwise(consumer) || !consumer.getIndexingMapsArray().back().isIdentity() ||
            cast<RankedTensorType>(consumer->getResult(0).getType()).getShape() != type.getShape())
          continue;
        auto member = [&](Value v) {
          auto it = v.getDefiningOp() ? numberOf.find(v.getDefiningOp()) : numberOf.end();
          return it != numberOf.end() && groupOf[it->second] == g;
        };
        // A view of the root's result between the two would need other indices.
        bool direct = llvm::any_of(consumer.getDpsInputs(), member);
        bool throughView = llvm::any_of(consumer.getDpsInputs(), [&](Value v) {
          SmallVector<unsigned> from;
          producersOf(v, from);
          return !member(v) && llvm::any_of(from, [&](unsigned p) { return groupOf[p] == g; });
        });
        if (!direct || throughView || !identityRead(consumer, member) || !mayMerge(g, groupOf[r]))
          continue;
        merge(g, groupOf[r]);
      }
    }
  }
}

/// Reduces over the last loop only.
static bool reducesRows(linalg::GenericOp op) {
  unsigned loops = op.getNumLoops();
  if (op.getNumReductionLoops() == 0)
    return false;
  AffineMap id = AffineMap::getMultiDimIdentityMap(loops, op.getContext());
  return llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
    return op.getMatchingIndexingMap(&init) == id.dropResult(loops - 1);
  });
}

bool Grouping::joinsRows(unsigned node, const Group &group) {
  Operation *op = nodes[node];
  SmallVector<int64_t> space;
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (generic)
    space = generic.getStaticLoopRanges();
  else if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op))
    space = llvm::to_vector(softmax.getInputOperandType().getShape());
  ArrayRef<int64_t> mine = space, theirs = group.space;
  bool fits = mine == theirs || (!mine.empty() && mine.drop_back() == theirs) ||
              (!theirs.empty() && theirs.drop_back() == mine);
  if (!fits)
    return false;
  // Sums over other dims than the last are complete only after all rows.
  for (unsigned p : preds[node]) {
    if (groupOf[p] != groupOf[group.nodes.front()])
      continue;
    if (auto from = dyn_cast<linalg::GenericOp>(nodes[p]))
      if (from.getNumReductionLoops() && !reducesRows(from))
        return false;
  }
  return true;
}

void Grouping::growRows() {
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, nodes.size()));
  llvm::sort(order, [&](unsigned a, unsigned b) { return nodes[a]->isBeforeInBlock(nodes[b]); });
  for (unsigned n : order) {
    unsigned g = groupOf[n];
    if (groups[g].fixed || groups[g].contraction || groups[g].nodes.size() != 1)
      continue;
    Operation *op = nodes[n];
    auto generic = dyn_cast<linalg::GenericOp>(op);
    auto softmax = dyn_cast<linalg::SoftmaxOp>(op);
    if (softmax && softmax.getDimension() + 1 == (uint64_t)softmax.getInputOperandRank())
      groups[g].space = llvm::to_vector(softmax.getInputOperandType().getShape());
    else if (generic && hasOnlyProjectedMaps(generic) && generic.getNumDpsInits() == 1 &&
             (generic.getNumReductionLoops() || isPointwise(generic)))
      groups[g].space = generic.getStaticLoopRanges();
    else
      continue;
    groups[g].rows = true;
    llvm::SetVector<unsigned> candidates;
    for (unsigned p : preds[n])
      if (groups[groupOf[p]].rows)
        candidates.insert(groupOf[p]);
    for (unsigned c : candidates) {
      unsigned mine = groupOf[n];
      if (c == mine || groups[c].nodes.empty() || phases[groups[c].nodes.front()] != phases[n] ||
          groups[c].nodes.size() + groups[mine].nodes.size() > kMaxOpsPerKernel ||
          !joinsRows(n, groups[c]) || !mayMerge(c, mine))
        continue;
      // Joining a second producer group must fit the space of the first.
      if (groups[mine].nodes.size() > 1 && groups[mine].space != groups[c].space)
        continue;
      SmallVector<int64_t> space = groups[c].space;
      if (groups[mine].space.size() > space.size())
        space = groups[mine].space;
      merge(c, mine);
      groups[c].space = space;
      groups[c].rows = true;
    }
  }
}

/// A view that the caller needs is written in place of its source.
void Grouping::joinViews() {
  for (unsigned n = 0; n < nodes.size(); ++n) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(nodes[n]))
      continue;
    auto it = numberOf.find(nodes[n]->getOperand(0).getDefiningOp());
    if (it == numberOf.end() || roleOf(it->first) != OpRole::Compute)
      continue;
    unsigned from = groupOf[it->second], view = groupOf[n];
    if (from != view && mayMerge(from, view))
      merge(from, view);
  }
}

std::vector<SmallVector<Operation *>> Grouping::run() {
  addEpilogues();
  growRows();
  joinViews();
  // Kahn's algorithm over groups; among the ready ones the one whose last op
  // stands first, so that nothing is computed long before it was written.
  std::vector<unsigned> waiting(groups.size());
  std::vector<llvm::SetVector<unsigned>> next(groups.size());
  for (unsigned n = 0; n < nodes.size(); ++n)
    for (unsigned s : succs[n])
      if (groupOf[n] != groupOf[s] && next[groupOf[n]].insert(groupOf[s]))
        ++waiting[groupOf[s]];
  llvm::DenseMap<Operation *, unsigned> position;
  if (!nodes.empty())
    for (auto [i, op] : llvm::enumerate(*nodes.front()->getBlock()))
      position[&op] = i;
  using Entry = std::pair<unsigned, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  auto push = [&](unsigned g) {
    unsigned last = 0;
    for (unsigned n : groups[g].nodes)
      last = std::max(last, position[nodes[n]]);
    ready.push({last, g});
  };
  for (unsigned g = 0; g < groups.size(); ++g)
    if (!groups[g].nodes.empty() && waiting[g] == 0)
      push(g);
  std::vector<SmallVector<Operation *>> result;
  while (!ready.empty()) {
    unsigned g = ready.top().second;
    ready.pop();
    SmallVector<Operation *> ops;
    for (unsigned n : groups[g].nodes)
      ops.push_back(nodes[n]);
    llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    result.push_back(std::move(ops));
    for (unsigned s : next[g])
      if (--waiting[s] == 0)
        push(s);
  }
  return result;
}
