// Expands a program over its micro-batches.
#include "lib/Scheduling/StepGraph.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>

using namespace mlir;
using namespace flow;
using namespace flow::scheduling;
using actor::ActorOpInterface;
using actor::Rate;

std::vector<unsigned> StepGraph::topologicalOrder() const {
  std::vector<unsigned> pending(transitions.size()), order;
  for (auto &next : successors)
    for (unsigned to : next)
      ++pending[to];
  for (unsigned i = 0; i < pending.size(); ++i)
    if (!pending[i])
      order.push_back(i);
  for (size_t head = 0; head < order.size(); ++head)
    for (unsigned to : successors[order[head]])
      if (!--pending[to])
        order.push_back(to);
  if (order.size() != transitions.size())
    order.clear();
  return order;
}

static int64_t bytesOf(Value reg) {
  auto def = reg.getDefiningOp<actor::RegisterOp>();
  return def ? def.getBytes() : 0;
}

static int64_t estimateNs(ActorOpInterface op, const DeviceModel &device) {
  constexpr double overheadNs = 200, loadLatencyNs = 1000;
  auto moved = [&](double bytes, double latency, double rate) {
    return static_cast<int64_t>(latency + bytes / rate);
  };
  auto blockBytes = [](auto exchange) -> double {
    Type type = exchange.getElementType();
    return type.isIntOrFloat()
               ? exchange.getElements() * llvm::divideCeil(type.getIntOrFloatBitWidth(), 8)
               : 0;
  };
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case([&](actor::KernelOp kernel) {
        double compute = kernel.getFlops() / device.gflops,
               memory = kernel.getBytesMoved() / device.memoryGBps;
        return static_cast<int64_t>(overheadNs + std::max(compute, memory));
      })
      .Case<actor::CollectiveOp, actor::SendOp, actor::RecvOp>([&](auto exchange) {
        return moved(blockBytes(exchange), device.commLatencyNs, device.commGBps);
      })
      .Case([&](actor::LoadOp load) {
        return moved(bytesOf(load.getOutputs()[0]), loadLatencyNs, device.memoryGBps);
      })
      .Default([&](Operation *copy) {
        return moved(2 * bytesOf(copy->getOperand(0)), overheadNs, device.memoryGBps);
      });
}

namespace {

/// Expands one class: buffers and the order of firings that data demands.
class ClassExpansion {
public:
  ClassExpansion(actor::ClassOp op, unsigned microBatches, const DeviceModel &device)
      : microBatches(microBatches) {
    graph.op = op;
    graph.stage = op.getStage();
    for (auto unit : op.getBody().getOps<ActorOpInterface>()) {
      unsigned first = graph.firings.size(),
               count = unit.getRate() == Rate::Micro ? microBatches : 1;
      graph.actors.push_back({unit, unit.getRate(), estimateNs(unit, device), first});
      for (unsigned m = 0; m < count; ++m)
        graph.firings.push_back(
            {static_cast<unsigned>(graph.actors.size() - 1), m, unit.getStream(), 0, {}});
    }
    graph.predecessors.resize(graph.firings.size());
  }

  ClassGraph run() {
    makeBuffers();
    touchBuffers();
    orderByData();
    shareInPlace();
    return std::move(graph);
  }

private:
  unsigned microBatches;
  ClassGraph graph;
  llvm::DenseMap<std::pair<Value, unsigned>, unsigned> bufferOf; ///< register, instance
  llvm::DenseMap<Value, unsigned> stateBuffer;                   ///< by the state

  unsigned instances(actor::RegisterOp reg) {
    return reg.getRate() == Rate::Micro ? microBatches : 1;
  }

  void makeBuffers() {
    for (auto reg : graph.op.getBody().getOps<actor::RegisterOp>()) {
      for (unsigned m = 0; m < instances(reg); ++m) {
        if (reg.isState()) {
          // Old and new version are one storage.
          auto [it, isNew] = stateBuffer.try_emplace(reg.getExchanged(), graph.buffers.size());
          bufferOf[{reg, m}] = it->second;
          if (!isNew)
            continue;
        } else {
          bufferOf[{reg, m}] = graph.buffers.size();
        }
        Buffer buffer;
        buffer.bytes = reg.getBytes();
        buffer.isState = reg.isState();
        buffer.isExchanged = reg.isTensor();
        graph.buffers.push_back(buffer);
      }
    }
  }

  /// The register and instance that a reader in micro-batch m means.
  std::pair<actor::RegisterOp, unsigned> resolve(Value value, unsigned m) {
    while (auto carried = value.getDefiningOp<actor::CarriedOp>()) {
      value = m == 0 ? carried.getInitial() : carried.getNext();
      m = m == 0 ? 0 : m - 1;
    }
    auto reg = value.getDefiningOp<actor::RegisterOp>();
    return {reg, reg.getRate() == Rate::Micro ? m : 0};
  }

  void touchBuffers() {
    for (auto [f, firing] : llvm::enumerate(graph.firings)) {
      const ClassActor &unit = graph.actors[firing.actor];
      unsigned m = unit.rate == Rate::Micro ? firing.microBatch : microBatches - 1;
      unsigned reads = unit.op.getReads().size(), writes = unit.op.getWrites().size();
      for (auto [i, value] : llvm::enumerate(unit.op.getRegisters())) {
        auto [reg, instance] = resolve(value, m);
        unsigned buffer = bufferOf[{reg, instance}];
        // Every firing has scratch of its own.
        if (i >= reads + writes) {
          buffer = graph.buffers.size();
          graph.buffers.emplace_back().bytes = reg.getBytes();
        }
        firing.buffers.push_back(buffer);
        Buffer &touched = graph.buffers[buffer];
        if (!llvm::is_contained(touched.touches, f))
          touched.touches.push_back(f);
        if (i >= reads)
          touched.writer = f;
      }
    }
  }

  void precede(unsigned before, unsigned after) {
    if (before != after && !llvm::is_contained(graph.predecessors[after], before))
      graph.predecessors[after].push_back(before);
  }

  void orderByData() {
    for (auto [f, firing] : llvm::enumerate(graph.firings)) {
      const ClassActor &unit = graph.actors[firing.actor];
      if (firing.microBatch > 0)
        precede(f - 1, f);
      unsigned reads = unit.op.getReads().size();
      unsigned m = unit.rate == Rate::Micro ? firing.microBatch : microBatches - 1;
      for (auto [i, value] : llvm::enumerate(unit.op.getReads())) {
        actor::RegisterOp reg = resolve(value, m).first;
        int writer = graph.buffers[firing.buffers[i]].writer;
        if (writer < 0)
          continue;
        if (reg.isState() && !reg.getUpdated())
          precede(f, writer); // reads what the step found
        else
          precede(writer, f);
      }
      (void)reads;
    }
  }

  /// Lets kernels write over inputs that nobody else reads.
  void shareInPlace() {
    llvm::EquivalenceClasses<unsigned> shared;
    for (auto [f, firing] : llvm::enumerate(graph.firings)) {
      auto kernel = dyn_cast<actor::KernelOp>(graph.actors[firing.actor].op.getOperation());
      if (!kernel || !kernel.getInplace())
        continue;
      llvm::SmallVector<unsigned> taken;
      for (auto [output, input] : llvm::enumerate(*kernel.getInplace())) {
        if (input < 0)
          continue;
        unsigned from = firing.buffers[input],
                 to = firing.buffers[kernel.getInputs().size() + output];
        const Buffer &a = graph.buffers[from], &b = graph.buffers[to];
        auto isPlain = [](const Buffer &x) { return !x.isState && !x.isExchanged; };
        bool isOnlyReader = a.writer >= 0 && a.writer != static_cast<int>(f) &&
                            a.touches.size() == 2 && llvm::count(firing.buffers, from) == 1;
        if (!isPlain(a) || !isPlain(b) || a.bytes != b.bytes || !isOnlyReader ||
            llvm::is_contained(taken, from))
          continue;
        taken.push_back(from);
        shared.unionSets(from, to);
      }
    }
    llvm::DenseMap<unsigned, unsigned> leaderOf;
    for (auto *leader : shared) {
      if (!leader->isLeader())
        continue;
      for (unsigned member : shared.members(*leader))
        leaderOf[member] = leader->getData();
    }
    if (leaderOf.empty())
      return;
    std::vector<Buffer> merged;
    std::vector<unsigned> renumbered(graph.buffers.size(), ~0u);
    for (unsigned i = 0; i < graph.buffers.size(); ++i) {
      unsigned leader = leaderOf.contains(i) ? leaderOf[i] : i;
      if (renumbered[leader] == ~0u) {
        renumbered[leader] = merged.size();
        merged.push_back(graph.buffers[leader]);
        merged.back().touches.clear();
        merged.back().writer = -1;
      }
      renumbered[i] = renumbered[leader];
      Buffer &target = merged[renumbered[i]];
      for (unsigned touch : graph.buffers[i].touches)
        if (!llvm::is_contained(target.touches, touch))
          target.touches.push_back(touch);
      // The first writer is the one whose input is not among the shared ones.
      int writer = graph.buffers[i].writer;
      bool readsShared = false;
      if (writer >= 0) {
        unsigned reads = graph.actors[graph.firings[writer].actor].op.getReads().size();
        for (unsigned input : ArrayRef(graph.firings[writer].buffers).take_front(reads))
          readsShared |= input != i && leaderOf.contains(input) && leaderOf[input] == leader;
      }
      if (writer >= 0 && !readsShared)
        target.writer = writer;
    }
    for (Firing &firing : graph.firings)
      for (unsigned &buffer : firing.buffers)
        buffer = renumbered[buffer];
    graph.buffers = std::move(merged);
  }
};

/// Joins the firings of an exchange's members into one transition.
class Joining {
public:
  explicit Joining(StepGraph &graph) : graph(graph) {}

  LogicalResult run() {
    for (unsigned c = 0; c < graph.classes.size(); ++c)
      for (unsigned a = 0; a < graph.classes[c].actors.size(); ++a)
        if (failed(join(c, a)))
          return failure();
    for (unsigned c = 0; c < graph.classes.size(); ++c)
      if (size_t expected = collectives[graph.classes[c].stage].size(); ordinal[c] != expected)
        return graph.classes[c].op.emitOpError("has ")
               << ordinal[c] << " collectives, another class of stage " << graph.classes[c].stage
               << " has " << expected;
    for (auto &[channel, ends] : channels)
      if (!ends.hasSend || !ends.hasRecv)
        return ends.op->emitOpError("channel ")
               << channel << " has no " << (ends.hasSend ? "recv" : "send")
               << " on the other stage";
    return success();
  }

private:
  StepGraph &graph;
  struct Channel {
    unsigned first = 0;
    bool hasSend = false, hasRecv = false;
    Operation *op = nullptr;
  };
  llvm::MapVector<int64_t, Channel> channels;
  /// Per stage: the collectives of its first class, in IR order.
  llvm::DenseMap<int64_t, std::vector<unsigned>> collectives;
  llvm::DenseMap<int64_t, unsigned> firstClass;
  llvm::DenseMap<unsigned, unsigned> ordinal; ///< class -> collectives so far

  /// Transitions first, first + 1, .. for the firings of an actor.
  unsigned append(unsigned cls, unsigned index) {
    const ClassActor &unit = graph.classes[cls].actors[index];
    unsigned first = graph.transitions.size(),
             count = unit.rate == Rate::Micro ? graph.microBatches : 1;
    for (unsigned m = 0; m < count; ++m) {
      Transition t;
      t.microBatch = m;
      t.rate = unit.rate;
      t.phase = unit.op.getPhase();
      t.stage = graph.classes[cls].stage;
      t.isExchange = unit.op.getStream() == actor::Stream::Comm;
      graph.transitions.push_back(t);
    }
    return first;
  }

  void enter(unsigned cls, unsigned index, unsigned first) {
    const ClassActor &unit = graph.classes[cls].actors[index];
    unsigned count = unit.rate == Rate::Micro ? graph.microBatches : 1;
    for (unsigned m = 0; m < count; ++m) {
      unsigned firing = unit.firstFiring + m;
      graph.classes[cls].firings[firing].transition = first + m;
      graph.transitions[first + m].members.push_back({cls, firing});
      graph.transitions[first + m].costNs =
          std::max(graph.transitions[first + m].costNs, unit.costNs);
    }
  }

  LogicalResult join(unsigned cls, unsigned index) {
    ClassGraph &owner = graph.classes[cls];
    ActorOpInterface op = owner.actors[index].op;
    if (auto send = dyn_cast<actor::SendOp>(op.getOperation()))
      return joinPeer(cls, index, send.getChannel(), true);
    if (auto recv = dyn_cast<actor::RecvOp>(op.getOperation()))
      return joinPeer(cls, index, recv.getChannel(), false);
    auto collective = dyn_cast<actor::CollectiveOp>(op.getOperation());
    if (!collective) {
      enter(cls, index, append(cls, index));
      return success();
    }
    unsigned position = ordinal[cls]++;
    firstClass.try_emplace(owner.stage, cls);
    auto &known = collectives[owner.stage];
    if (firstClass[owner.stage] == cls) {
      known.push_back(append(cls, index));
      enter(cls, index, known.back());
      return success();
    }
    if (position >= known.size())
      return op.emitOpError("has no counterpart in the other classes of stage ") << owner.stage;
    Member other = graph.transitions[known[position]].members.front();
    ClassGraph &otherClass = graph.classes[other.cls];
    auto counterpart = cast<actor::CollectiveOp>(
        otherClass.actors[otherClass.firings[other.firing].actor].op.getOperation());
    // Blocks may differ where no group has ranks of both classes.
    bool isSameKind = counterpart.getCollective() == collective.getCollective() &&
                      counterpart.getRate() == collective.getRate() &&
                      counterpart.getAxes() == collective.getAxes() &&
                      counterpart.getMonoid() == collective.getMonoid() &&
                      counterpart.getElementType() == collective.getElementType();
    if (!isSameKind || (counterpart.getElements() != collective.getElements() &&
                        collective.hasMembersIn(otherClass.op))) {
      auto diag = op.emitOpError("differs from its counterpart in another class of stage ")
                  << owner.stage;
      diag.attachNote(counterpart.getLoc()) << "the counterpart";
      return diag;
    }
    enter(cls, index, known[position]);
    return success();
  }

  LogicalResult joinPeer(unsigned cls, unsigned index, int64_t number, bool isSend) {
    Channel &channel = channels[number];
    if (!channel.op) {
      channel.op = graph.classes[cls].actors[index].op;
      channel.first = append(cls, index);
    }
    const ClassActor &unit = graph.classes[cls].actors[index];
    if (unit.rate != graph.transitions[channel.first].rate)
      return channel.op->emitOpError("both ends of channel ") << number << " must have one rate";
    unsigned count = unit.rate == Rate::Micro ? graph.microBatches : 1;
    // The unit is that of the sender.
    if (isSend)
      for (unsigned m = 0; m < count; ++m) {
        graph.transitions[channel.first + m].stage = graph.classes[cls].stage;
        graph.transitions[channel.first + m].phase = graph.classes[cls].actors[index].op.getPhase();
      }
    (isSend ? channel.hasSend : channel.hasRecv) = true;
    enter(cls, index, channel.first);
    return success();
  }
};

} // namespace

FailureOr<StepGraph> scheduling::expand(actor::ProgramOp program, const DeviceModel &device) {
  StepGraph graph;
  graph.program = program;
  graph.microBatches = program.getMicroBatches();
  graph.stages = cast<actor::PlanOp>(program->getParentOp()).getStages();
  for (auto cls : program.getBody().getOps<actor::ClassOp>())
    graph.classes.push_back(ClassExpansion(cls, graph.microBatches, device).run());
  if (failed(Joining(graph).run()))
    return failure();
  graph.successors.resize(graph.transitions.size());
  for (ClassGraph &cls : graph.classes)
    for (auto [firing, before] : llvm::enumerate(cls.predecessors))
      for (unsigned pred : before)
        graph.addEdge(cls.firings[pred].transition, cls.firings[firing].transition);
  return graph;
}
