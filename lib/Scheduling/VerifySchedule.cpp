// Checks the tables of a program. Deliberately shares no code with what made
// them: reads registers, actors and orders only.
#include "lib/Scheduling/Passes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"
#include <array>
#include <map>

namespace flow {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "lib/Scheduling/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;
using actor::ActorOpInterface;
using actor::Rate;
using actor::Stream;

namespace {

constexpr unsigned numStreams = 3;
/// Waits reach two steps back.
constexpr unsigned numSteps = 3;
using Clock = std::array<int64_t, numStreams>;

/// One firing in one of the steps.
struct Node {
  actor::FireOp fire;
  ActorOpInterface unit;
  int64_t step = 0;
  unsigned stream = 0;
  int64_t position = 0; ///< among all firings of the stream, over all steps
  Clock clock{};        ///< what has finished when it starts, in every timing
};

struct ClassRun {
  actor::ClassOp op;
  std::array<std::vector<actor::FireOp>, numStreams> order;
  std::array<int64_t, numStreams> next{}; ///< firings finished
  std::array<std::vector<Node>, numStreams> nodes;

  int64_t perStep(unsigned stream) const { return order[stream].size(); }
  int64_t total(unsigned stream) const { return numSteps * perStep(stream); }
  bool isDone(unsigned stream) const { return next[stream] == total(stream); }
  actor::FireOp head(unsigned stream) const {
    return order[stream][next[stream] % perStep(stream)];
  }
  int64_t step(unsigned stream) const { return next[stream] / perStep(stream); }
};

struct StreamId {
  unsigned cls, stream;
  bool operator==(const StreamId &) const = default;
};

/// Runs all classes together, each stream in its order.
class JointRun {
public:
  explicit JointRun(actor::ProgramOp program) : program(program) {
    for (auto cls : program.getBody().getOps<actor::ClassOp>()) {
      ClassRun run;
      run.op = cls;
      for (auto order : cls.getBody().getOps<actor::OrderOp>())
        for (auto fire : order.getBody().getOps<actor::FireOp>())
          run.order[static_cast<unsigned>(order.getStream())].push_back(fire);
      classes.push_back(std::move(run));
    }
  }

  LogicalResult run();
  std::vector<ClassRun> classes;

private:
  actor::ProgramOp program;

  bool hasWaited(const ClassRun &cls, unsigned stream);
  /// The streams that must stand at this exchange too; itself included.
  FailureOr<SmallVector<StreamId>> members(StreamId at);
  FailureOr<bool> tryFire(StreamId at);
  void finish(StreamId at);
  LogicalResult reportCycle();
  std::optional<StreamId> blockedBy(StreamId at);
  std::string describe(StreamId at);
};

int64_t awaitedCount(const ClassRun &cls, int64_t step, actor::WaitAttr wait) {
  return (step - wait.getStepsBefore()) * cls.perStep(static_cast<unsigned>(wait.getStream())) +
         wait.getCount();
}

bool JointRun::hasWaited(const ClassRun &cls, unsigned stream) {
  for (auto wait : cls.head(stream).getWaits().getAsRange<actor::WaitAttr>())
    if (cls.next[static_cast<unsigned>(wait.getStream())] <
        awaitedCount(cls, cls.step(stream), wait))
      return false;
  return true;
}

/// Whether two collectives may meet: blocks differ at most where no group has
/// ranks of both classes.
bool isSameExchange(ActorOpInterface a, ActorOpInterface b) {
  auto x = dyn_cast<actor::CollectiveOp>(a.getOperation());
  auto y = dyn_cast<actor::CollectiveOp>(b.getOperation());
  if (!x || !y || x.getCollective() != y.getCollective() || x.getMonoid() != y.getMonoid() ||
      x.getAxes() != y.getAxes() || x.getElementType() != y.getElementType())
    return false;
  return x.getElements() == y.getElements() ||
         !x.hasMembersIn(cast<actor::ClassOp>(y->getParentOp()));
}

/// The channel of a send or recv.
std::optional<int64_t> channelOf(Operation *op) {
  if (auto send = dyn_cast<actor::SendOp>(op))
    return send.getChannel();
  if (auto recv = dyn_cast<actor::RecvOp>(op))
    return recv.getChannel();
  return std::nullopt;
}

FailureOr<SmallVector<StreamId>> JointRun::members(StreamId at) {
  ClassRun &cls = classes[at.cls];
  Operation *op = cls.head(at.stream).getActor().getDefiningOp();
  SmallVector<StreamId> result;
  std::optional<int64_t> channel = channelOf(op);
  int64_t peer =
      op->hasAttr("peer_stage") ? cast<IntegerAttr>(op->getAttr("peer_stage")).getInt() : -1;
  for (auto [c, other] : llvm::enumerate(classes)) {
    int64_t stage = other.op.getStage();
    if (stage == static_cast<int64_t>(cls.op.getStage()) || (channel && stage == peer))
      result.push_back({static_cast<unsigned>(c), at.stream});
  }
  return result;
}

/// Fires the head of a stream, with the other members of an exchange.
FailureOr<bool> JointRun::tryFire(StreamId at) {
  ClassRun &cls = classes[at.cls];
  if (cls.isDone(at.stream) || !hasWaited(cls, at.stream))
    return false;
  if (at.stream != static_cast<unsigned>(Stream::Comm)) {
    finish(at);
    return true;
  }
  FailureOr<SmallVector<StreamId>> group = members(at);
  if (failed(group))
    return failure();
  ActorOpInterface unit = cls.head(at.stream).getActor().getDefiningOp<ActorOpInterface>();
  for (StreamId id : *group) {
    ClassRun &other = classes[id.cls];
    if (other.isDone(id.stream) || !hasWaited(other, id.stream))
      return false;
    actor::FireOp head = other.head(id.stream);
    auto otherUnit = head.getActor().getDefiningOp<ActorOpInterface>();
    std::optional<int64_t> channel = channelOf(unit), otherChannel = channelOf(otherUnit);
    bool isSameStage = other.op.getStage() == cls.op.getStage();
    if (channel != otherChannel || (!channel && !isSameExchange(unit, otherUnit)) ||
        head.getMicroBatch() != cls.head(at.stream).getMicroBatch()) {
      // Another stage may come here later; the members of a stage may not differ.
      if (!isSameStage)
        return false;
      auto diag = head.emitOpError("meets '")
                  << unit.getActorName()
                  << "' of another class of its stage: members would exchange different things";
      diag.attachNote(cls.head(at.stream).getLoc()) << "the other class";
      return failure();
    }
  }
  for (StreamId id : *group)
    finish(id);
  return true;
}

void JointRun::finish(StreamId at) {
  ClassRun &cls = classes[at.cls];
  Node node;
  node.fire = cls.head(at.stream);
  node.unit = node.fire.getActor().getDefiningOp<ActorOpInterface>();
  node.step = cls.step(at.stream);
  node.stream = at.stream;
  node.position = cls.next[at.stream];
  auto join = [&](const Node &before) {
    for (unsigned s = 0; s < numStreams; ++s)
      node.clock[s] = std::max(node.clock[s], before.clock[s]);
    node.clock[before.stream] = std::max(node.clock[before.stream], before.position + 1);
  };
  if (node.position > 0)
    join(cls.nodes[at.stream].back());
  for (auto wait : node.fire.getWaits().getAsRange<actor::WaitAttr>())
    if (int64_t count = awaitedCount(cls, node.step, wait); count > 0)
      join(cls.nodes[static_cast<unsigned>(wait.getStream())][count - 1]);
  cls.nodes[at.stream].push_back(node);
  ++cls.next[at.stream];
}

LogicalResult JointRun::run() {
  bool isMoving = true;
  while (isMoving) {
    isMoving = false;
    for (unsigned c = 0; c < classes.size(); ++c)
      for (unsigned s = 0; s < numStreams; ++s)
        while (true) {
          FailureOr<bool> fired = tryFire({c, s});
          if (failed(fired))
            return failure();
          if (!*fired)
            break;
          isMoving = true;
        }
  }
  for (ClassRun &cls : classes)
    for (unsigned s = 0; s < numStreams; ++s)
      if (!cls.isDone(s))
        return reportCycle();
  return success();
}

/// A stream that must move before `at` can.
std::optional<StreamId> JointRun::blockedBy(StreamId at) {
  ClassRun &cls = classes[at.cls];
  for (auto wait : cls.head(at.stream).getWaits().getAsRange<actor::WaitAttr>()) {
    unsigned stream = static_cast<unsigned>(wait.getStream());
    if (cls.next[stream] < awaitedCount(cls, cls.step(at.stream), wait))
      return StreamId{at.cls, stream};
  }
  if (at.stream != static_cast<unsigned>(Stream::Comm))
    return std::nullopt;
  auto group = members(at);
  Operation *unit = cls.head(at.stream).getActor().getDefiningOp();
  for (StreamId id : *group) {
    ClassRun &other = classes[id.cls];
    if (id == at || other.isDone(id.stream))
      continue;
    Operation *otherUnit = other.head(id.stream).getActor().getDefiningOp();
    bool isThere = channelOf(unit) == channelOf(otherUnit) &&
                   other.head(id.stream).getMicroBatch() == cls.head(at.stream).getMicroBatch();
    if (!isThere || !hasWaited(other, id.stream))
      return id;
  }
  return std::nullopt;
}

std::string JointRun::describe(StreamId at) {
  ClassRun &cls = classes[at.cls];
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "stage " << cls.op.getStage() << " " << stringifyEnum(static_cast<Stream>(at.stream))
     << " ";
  if (cls.isDone(at.stream)) {
    os << "(at its end)";
  } else {
    auto unit = cls.head(at.stream).getActor().getDefiningOp<ActorOpInterface>();
    os << "'" << unit.getActorName() << "' of micro-batch " << cls.head(at.stream).getMicroBatch();
  }
  return text;
}

LogicalResult JointRun::reportCycle() {
  StreamId at{0, 0};
  for (unsigned c = 0; c < classes.size(); ++c)
    for (unsigned s = 0; s < numStreams; ++s)
      if (!classes[c].isDone(s))
        at = {c, s};
  SmallVector<StreamId> path;
  while (!llvm::is_contained(path, at)) {
    path.push_back(at);
    std::optional<StreamId> next = classes[at.cls].isDone(at.stream) ? std::nullopt : blockedBy(at);
    if (!next)
      break;
    at = *next;
  }
  auto start = llvm::find(path, at);
  InFlightDiagnostic diag = program.emitError("the orders have a cycle: ");
  for (auto it = start; it != path.end(); ++it)
    diag << describe(*it) << " waits for ";
  diag << describe(at);
  return diag;
}

/// Where a firing finds or leaves a register instance.
struct Access {
  Node *node;
  int64_t begin, end;
  bool isState;
  const void *state; ///< of a state register
  unsigned input;    ///< index among the actor's registers
};

/// Checks the memory of one class over the steps of a run.
class MemoryCheck {
public:
  MemoryCheck(ClassRun &run, unsigned microBatches) : run(run), microBatches(microBatches) {}

  LogicalResult check() {
    for (auto &stream : run.nodes)
      for (Node &node : stream)
        if (failed(collectWrites(node)))
          return failure();
    for (auto &stream : run.nodes)
      for (Node &node : stream)
        if (failed(checkReads(node)))
          return failure();
    return success();
  }

private:
  ClassRun &run;
  unsigned microBatches;
  /// (register, instance, step) -> its write
  std::map<std::tuple<const void *, unsigned, int64_t>, Access> writeOf;
  std::vector<Access> writes;
  llvm::DenseMap<const void *, std::vector<Access>> stateWrites;

  static bool isBefore(const Node &a, const Node &b) { return b.clock[a.stream] > a.position; }

  Access access(Node &node, unsigned index, actor::RegisterOp reg) {
    int64_t begin = node.fire.getOffsets()[index];
    if (reg.isTensor() && node.step % 2)
      begin += llvm::alignTo(reg.getBytes(), actor::alignmentInBytes);
    const void *state = reg.isState() ? reg.getExchanged().getAsOpaquePointer() : nullptr;
    return {&node,         begin, begin + static_cast<int64_t>(reg.getBytes()),
            reg.isState(), state, index};
  }

  std::pair<actor::RegisterOp, unsigned> resolve(Value value, unsigned m) {
    while (auto carried = value.getDefiningOp<actor::CarriedOp>()) {
      bool isFirst = m == 0;
      value = isFirst ? carried.getInitial() : carried.getNext();
      m = isFirst ? 0 : m - 1;
    }
    auto reg = value.getDefiningOp<actor::RegisterOp>();
    return {reg, reg.getRate() == Rate::Micro ? m : 0};
  }
  unsigned instanceSeen(Node &node) {
    return node.unit.getRate() == Rate::Micro ? static_cast<unsigned>(node.fire.getMicroBatch())
                                              : microBatches - 1;
  }

  LogicalResult collectWrites(Node &node) {
    unsigned reads = node.unit.getReads().size();
    SmallVector<Value> registers = node.unit.getRegisters();
    for (unsigned i = reads; i < registers.size(); ++i) {
      auto reg = registers[i].getDefiningOp<actor::RegisterOp>();
      unsigned instance =
          reg.getRate() == Rate::Micro ? static_cast<unsigned>(node.fire.getMicroBatch()) : 0;
      Access write = access(node, i, reg);
      if (!write.isState && write.end > static_cast<int64_t>(run.op.getArenaBytes().value_or(0)))
        return node.fire.emitOpError("register '")
               << reg.getRegisterName() << "' ends at byte " << write.end << " of an arena of "
               << run.op.getArenaBytes().value_or(0);
      writeOf[{reg.getOperation(), instance, node.step}] = write;
      if (write.isState)
        stateWrites[write.state].push_back(write);
      else if (write.begin != write.end)
        writes.push_back(write);
    }
    return success();
  }

  LogicalResult conflict(Node &reader, actor::RegisterOp reg, Node &writer) {
    auto diag = reader.fire.emitOpError("may read register '")
                << reg.getRegisterName() << "' after '" << writer.unit.getActorName()
                << "' of micro-batch " << writer.fire.getMicroBatch() << " has overwritten it";
    diag.attachNote(writer.fire.getLoc()) << "nothing orders the two";
    return diag;
  }

  LogicalResult checkState(Node &node, actor::RegisterOp reg, const Access &read) {
    for (const Access &write : stateWrites[read.state]) {
      Node &writer = *write.node;
      if (&writer == &node)
        continue;
      // What the step found was left by the step before.
      bool mustBeBefore = writer.step < node.step || (writer.step == node.step && reg.getUpdated());
      if (mustBeBefore ? !isBefore(writer, node) : !isBefore(node, writer))
        return conflict(node, reg, writer);
    }
    return success();
  }

  LogicalResult checkReads(Node &node) {
    for (auto [i, value] : llvm::enumerate(node.unit.getReads())) {
      auto [reg, instance] = resolve(value, instanceSeen(node));
      Access read = access(node, i, reg);
      if (read.isState) {
        if (failed(checkState(node, reg, read)))
          return failure();
        continue;
      }
      auto it = writeOf.find({reg.getOperation(), instance, node.step});
      if (it == writeOf.end())
        return node.fire.emitOpError("reads register '")
               << reg.getRegisterName() << "', which nobody writes in this step";
      Node &producer = *it->second.node;
      if (it->second.begin != read.begin)
        return node.fire.emitOpError("reads register '")
               << reg.getRegisterName() << "' at byte " << read.begin << ", but it lies at byte "
               << it->second.begin;
      if (!isBefore(producer, node))
        return node.fire.emitOpError("reads register '")
               << reg.getRegisterName() << "' before '" << producer.unit.getActorName()
               << "' has certainly written it";
      if (failed(checkOverwrites(node, reg, read, producer)))
        return failure();
    }
    return checkOutputs(node);
  }

  LogicalResult checkOverwrites(Node &node, actor::RegisterOp reg, const Access &read,
                                Node &producer) {
    for (const Access &write : writes) {
      Node &writer = *write.node;
      if (write.end <= read.begin || read.end <= write.begin || &writer == &producer)
        continue;
      if (&writer == &node) {
        if (!isAllowedInPlace(node, read.input, write))
          return node.fire.emitOpError("writes over register '")
                 << reg.getRegisterName() << "', which it reads";
        continue;
      }
      if (!isBefore(writer, producer) && !isBefore(node, writer))
        return conflict(node, reg, writer);
    }
    return success();
  }

  bool isAllowedInPlace(Node &node, unsigned input, const Access &write) {
    auto kernel = dyn_cast<actor::KernelOp>(node.unit.getOperation());
    if (!kernel || !kernel.getInplace())
      return false;
    unsigned output = write.input - kernel.getInputs().size();
    return output < kernel.getOutputs().size() &&
           (*kernel.getInplace())[output] == static_cast<int64_t>(input) &&
           node.fire.getOffsets()[input] == node.fire.getOffsets()[write.input];
  }

  /// Two writes to the same bytes need an order, and those of one firing differ.
  LogicalResult checkOutputs(Node &node) {
    SmallVector<Value> registers = node.unit.getRegisters();
    for (unsigned i = node.unit.getReads().size(); i < registers.size(); ++i) {
      auto reg = registers[i].getDefiningOp<actor::RegisterOp>();
      if (reg.isState())
        continue;
      Access mine = access(node, i, reg);
      for (const Access &write : writes) {
        bool isSelf = write.node == &node && write.input == i;
        if (isSelf || write.end <= mine.begin || mine.end <= write.begin)
          continue;
        if (write.node == &node || (!isBefore(*write.node, node) && !isBefore(node, *write.node)))
          return node.fire.emitOpError("writes register '")
                 << reg.getRegisterName() << "' over the output of '"
                 << write.node->unit.getActorName() << "' without an order";
      }
    }
    return success();
  }
};

struct VerifySchedule : flow::impl::VerifyScheduleBase<VerifySchedule> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](actor::ProgramOp program) {
      JointRun run(program);
      if (failed(run.run()))
        return WalkResult::interrupt();
      for (ClassRun &cls : run.classes)
        if (failed(MemoryCheck(cls, program.getMicroBatches()).check()))
          return WalkResult::interrupt();
      return WalkResult::skip();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
