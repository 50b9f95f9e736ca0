// Verifiers and names of the actor ops.
#include "dialects/Actor/IR/ActorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flow::actor;

#include "dialects/Actor/IR/ActorDialect.cpp.inc"
#include "dialects/Actor/IR/ActorEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Actor/IR/ActorAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Actor/IR/ActorInterfaces.cpp.inc"
#include "dialects/Actor/IR/ActorTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Actor/IR/ActorOps.cpp.inc"

void ActorDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Actor/IR/ActorAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Actor/IR/ActorTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Actor/IR/ActorOps.cpp.inc"
      >();
}

Stream flow::actor::streamOf(Operation *actor) {
  if (isa<LoadOp>(actor))
    return Stream::Io;
  return isa<KernelOp, CopyOp>(actor) ? Stream::Compute : Stream::Comm;
}

LogicalResult WaitAttr::verify(function_ref<InFlightDiagnostic()> emitError, Stream, int64_t count,
                               int64_t stepsBefore) {
  if (stepsBefore < 0 || stepsBefore > 2)
    return emitError() << "expected at most two steps before, got " << stepsBefore;
  if (count < (stepsBefore == 0 ? 1 : 0))
    return emitError() << "count " << count << " is too small";
  return success();
}

/// An SSA name from the model's name.
static std::string valueName(StringRef prefix, StringRef name) {
  std::string text = prefix.str();
  for (char c : name.take_front(40))
    text += llvm::isAlnum(c) ? c : '_';
  return text;
}

#define FLOW_NAMED_RESULT(OP, PREFIX, NAME)                                                        \
  void OP::getAsmResultNames(OpAsmSetValueNameFn set) {                                            \
    set(getResult(), valueName(PREFIX, NAME()));                                                   \
  }
FLOW_NAMED_RESULT(StateOp, "state_", getStateName)
FLOW_NAMED_RESULT(TensorOp, "tensor_", getTensorName)
FLOW_NAMED_RESULT(RegisterOp, "r_", getRegisterName)
FLOW_NAMED_RESULT(KernelOp, "run_", getActorName)
FLOW_NAMED_RESULT(CollectiveOp, "comm_", getActorName)
FLOW_NAMED_RESULT(SendOp, "send_", getActorName)
FLOW_NAMED_RESULT(RecvOp, "recv_", getActorName)
FLOW_NAMED_RESULT(LoadOp, "load_", getActorName)
FLOW_NAMED_RESULT(CopyOp, "copy_", getActorName)
#undef FLOW_NAMED_RESULT

//===----------------------------------------------------------------------===//
// What holds the actors
//===----------------------------------------------------------------------===//

LogicalResult PlanOp::verify() {
  if (getAxes().size() != getSizes().size())
    return emitOpError("expected one size per axis, got ")
           << getSizes().size() << " sizes and " << getAxes().size() << " axes";
  for (int64_t size : getSizes())
    if (size < 1)
      return emitOpError("axis sizes must be positive, got ") << size;
  if (static_cast<int64_t>(getStages()) < 1)
    return emitOpError("expected at least one stage, got ") << static_cast<int64_t>(getStages());
  llvm::StringSet<> names;
  for (auto program : getBody().getOps<ProgramOp>())
    if (!names.insert(program.getProgramName()).second)
      return program.emitOpError("program '") << program.getProgramName() << "' occurs twice";
  return success();
}

/// Whether two boxes have a coordinate in common.
static bool overlap(ClassOp a, ClassOp b) {
  for (auto [aLo, aHi, bLo, bHi] : llvm::zip(a.getLo(), a.getHi(), b.getLo(), b.getHi()))
    if (aHi <= bLo || bHi <= aLo)
      return false;
  return true;
}

LogicalResult ProgramOp::verify() {
  if (static_cast<int64_t>(getMicroBatches()) < 1)
    return emitOpError("expected at least one micro-batch, got ")
           << static_cast<int64_t>(getMicroBatches());
  auto plan = cast<PlanOp>((*this)->getParentOp());
  int64_t ranks = 1;
  for (int64_t size : plan.getSizes())
    ranks *= size;
  SmallVector<int64_t> covered(plan.getStages());
  SmallVector<ClassOp> classes(getBody().getOps<ClassOp>());
  for (auto [i, cls] : llvm::enumerate(classes)) {
    if (cls.getLo().size() != plan.getSizes().size() ||
        cls.getHi().size() != plan.getSizes().size())
      return cls.emitOpError("expected one coordinate per mesh axis");
    int64_t volume = 1;
    for (auto [lo, hi, size] : llvm::zip(cls.getLo(), cls.getHi(), plan.getSizes())) {
      if (lo < 0 || lo >= hi || hi > size)
        return cls.emitOpError("box from ")
               << lo << " to " << hi << " is not in an axis of size " << size;
      volume *= hi - lo;
    }
    if (cls.getStage() >= plan.getStages())
      return cls.emitOpError("stage ")
             << cls.getStage() << " is out of range for " << plan.getStages() << " stages";
    for (ClassOp other : ArrayRef(classes).take_front(i))
      if (other.getStage() == cls.getStage() && overlap(other, cls)) {
        auto diag = cls.emitOpError("shares coordinates with another class of stage ")
                    << cls.getStage();
        diag.attachNote(other.getLoc()) << "the other class";
        return diag;
      }
    covered[cls.getStage()] += volume;
  }
  for (auto [stage, count] : llvm::enumerate(covered))
    if (count != ranks)
      return emitOpError("the classes of stage ")
             << stage << " cover " << count << " of " << ranks << " ranks";
  return success();
}

RegionKind ClassOp::getRegionKind(unsigned) {
  return RegionKind::Graph;
}

/// The region is a graph without order, so this is what replaces dominance.
static LogicalResult verifyProducers(ClassOp cls) {
  llvm::DenseMap<Value, Operation *> producer;
  for (Operation &op : cls.getBody().front())
    if (auto actor = dyn_cast<ActorOpInterface>(op))
      for (Value reg : actor.getWrites()) {
        auto def = reg.getDefiningOp<RegisterOp>();
        if (!def)
          return op.emitOpError("writes what is not a register of its own");
        if (def.isState() && !def.getUpdated())
          return op.emitOpError("writes state '")
                 << def.getRegisterName() << "', which needs an 'updated' register";
        if (!producer.try_emplace(reg, &op).second) {
          auto diag = op.emitOpError("register '")
                      << def.getRegisterName() << "' has a second producer";
          diag.attachNote(producer[reg]->getLoc()) << "the first producer";
          return diag;
        }
      }
  for (auto reg : cls.getBody().getOps<RegisterOp>())
    if (!(reg.isState() && !reg.getUpdated()) && !producer.contains(reg.getReg()))
      for (Operation *user : reg.getReg().getUsers())
        if (isa<ActorOpInterface, CarriedOp>(user) && user->getOperands().size() &&
            !(isa<KernelOp>(user) &&
              llvm::is_contained(cast<KernelOp>(user).getScratch(), reg.getReg())))
          return user->emitOpError("reads register '")
                 << reg.getRegisterName() << "', which nobody writes";
  return success();
}

static LogicalResult verifyOrders(ClassOp cls) {
  auto program = cast<ProgramOp>(cls->getParentOp());
  bool seen[3] = {};
  llvm::DenseMap<Value, llvm::SmallDenseSet<int64_t>> fired;
  for (auto order : cls.getBody().getOps<OrderOp>()) {
    if (std::exchange(seen[static_cast<int>(order.getStream())], true))
      return order.emitOpError("stream ") << stringifyEnum(order.getStream()) << " has two orders";
    for (auto fire : order.getBody().getOps<FireOp>())
      if (!fired[fire.getActor()].insert(fire.getMicroBatch()).second)
        return fire.emitOpError("fires a second time for micro-batch ") << fire.getMicroBatch();
  }
  if (!llvm::is_contained(seen, true))
    return success();
  for (auto actor : cls.getBody().getOps<ActorOpInterface>()) {
    size_t expected = actor.getRate() == Rate::Micro ? program.getMicroBatches() : 1;
    auto it = fired.find(actor->getResult(0));
    size_t got = it == fired.end() ? 0 : it->second.size();
    if (got != expected)
      return actor.emitOpError("expected ") << expected << " firings in the orders, got " << got;
  }
  return success();
}

LogicalResult ClassOp::verify() {
  if (failed(verifyProducers(*this)))
    return failure();
  return verifyOrders(*this);
}

//===----------------------------------------------------------------------===//
// Registers and actors
//===----------------------------------------------------------------------===//

LogicalResult RegisterOp::verify() {
  if (static_cast<int64_t>(getBytes()) < 0)
    return emitOpError("bytes must not be negative, got ") << static_cast<int64_t>(getBytes());
  if (getUpdated() && !isState())
    return emitOpError("'updated' needs a state");
  if (isState() && getRate() != Rate::Step)
    return emitOpError("a state has rate step");
  return success();
}

/// Numbers of registers that an actor takes.
static LogicalResult verifyCounts(ActorOpInterface op, size_t reads, size_t writes) {
  if (op.getReads().size() != reads || op.getWrites().size() != writes)
    return op.emitOpError("expected ") << reads << " inputs and " << writes << " outputs, got "
                                       << op.getReads().size() << " and " << op.getWrites().size();
  return success();
}

LogicalResult KernelOp::verify() {
  std::optional<ArrayRef<int64_t>> inplace = getInplace();
  if (!inplace)
    return success();
  if (inplace->size() != getOutputs().size())
    return emitOpError("expected one in-place entry per output, got ")
           << inplace->size() << " for " << getOutputs().size() << " outputs";
  for (int64_t input : *inplace)
    if (input < -1 || input >= static_cast<int64_t>(getInputs().size()))
      return emitOpError("in-place input ")
             << input << " is out of range for " << getInputs().size() << " inputs";
  return success();
}

LogicalResult CollectiveOp::verify() {
  if (failed(verifyCounts(*this, 1, 1)))
    return failure();
  bool reduces =
      getCollective() == Collective::AllReduce || getCollective() == Collective::ReduceScatter;
  if (reduces != getMonoid().has_value())
    return emitOpError(reduces ? "needs a monoid" : "has no use for a monoid");
  if (getAxes().empty())
    return emitOpError("expected at least one axis");
  llvm::StringSet<> seen;
  auto plan = (*this)->getParentOfType<PlanOp>();
  for (Attribute axis : getAxes()) {
    if (!seen.insert(cast<StringAttr>(axis).getValue()).second)
      return emitOpError("axis ") << axis << " occurs twice";
    if (plan && !llvm::is_contained(plan.getAxes(), axis))
      return emitOpError("axis ") << axis << " is not an axis of the plan";
  }
  return success();
}

bool CollectiveOp::hasMembersIn(ClassOp other) {
  auto cls = (*this)->getParentOfType<ClassOp>();
  auto plan = (*this)->getParentOfType<PlanOp>();
  for (auto [i, axis] : llvm::enumerate(plan.getAxes())) {
    bool isDisjoint = cls.getHi()[i] <= other.getLo()[i] || other.getHi()[i] <= cls.getLo()[i];
    if (isDisjoint && !llvm::is_contained(getAxes(), axis))
      return false;
  }
  return true;
}

template <typename OpTy> static LogicalResult verifyPeer(OpTy op) {
  auto cls = op->template getParentOfType<ClassOp>();
  auto plan = op->template getParentOfType<PlanOp>();
  int64_t peer = op.getPeerStage();
  if (peer < 0 || peer >= static_cast<int64_t>(plan.getStages()) ||
      peer == static_cast<int64_t>(cls.getStage()))
    return op.emitOpError("peer stage ")
           << peer << " is not another one of " << plan.getStages() << " stages";
  return success();
}

LogicalResult SendOp::verify() {
  if (failed(verifyCounts(*this, 1, 0)))
    return failure();
  return verifyPeer(*this);
}

LogicalResult RecvOp::verify() {
  if (failed(verifyCounts(*this, 0, 1)))
    return failure();
  return verifyPeer(*this);
}

LogicalResult LoadOp::verify() {
  if (failed(verifyCounts(*this, 0, 1)))
    return failure();
  auto reg = getOutputs().front().getDefiningOp<RegisterOp>();
  if (!reg || !reg.isTensor())
    return emitOpError("expected the register of a tensor");
  return success();
}

LogicalResult CopyOp::verify() {
  return verifyCounts(*this, 1, 1);
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

LogicalResult FireOp::verify() {
  auto order = cast<OrderOp>((*this)->getParentOp());
  auto cls = dyn_cast_or_null<ClassOp>(order->getParentOp());
  auto actor = getActor().getDefiningOp<ActorOpInterface>();
  if (!cls || !actor || actor->getParentOp() != cls)
    return emitOpError("expected an actor of the same class");
  SmallVector<Value> registers = actor.getRegisters();
  if (registers.size() != getOffsets().size())
    return emitOpError("expected ")
           << registers.size() << " offsets, one per register, got " << getOffsets().size();
  for (auto [offset, reg] : llvm::zip(getOffsets(), registers)) {
    if (offset % alignmentInBytes)
      return emitOpError("offset ")
             << offset << " is not aligned to " << alignmentInBytes << " bytes";
    if (offset < 0 || (cls.getArenaBytes() && offset > static_cast<int64_t>(*cls.getArenaBytes())))
      return emitOpError("offset ") << offset << " is outside the arena";
  }
  auto program = cast<ProgramOp>(cls->getParentOp());
  int64_t limit = actor.getRate() == Rate::Micro ? program.getMicroBatches() : 1;
  if (static_cast<int64_t>(getMicroBatch()) < 0 || static_cast<int64_t>(getMicroBatch()) >= limit)
    return emitOpError("micro-batch ")
           << static_cast<int64_t>(getMicroBatch()) << " is out of range for " << limit;
  if (actor.getStream() != order.getStream())
    return emitOpError("actor of stream ")
           << stringifyEnum(actor.getStream()) << " in the order of stream "
           << stringifyEnum(order.getStream());
  for (auto wait : getWaits().getAsRange<WaitAttr>())
    if (wait.getStream() == order.getStream())
      return emitOpError("waits for its own stream");
  return success();
}
