// Checks what later phases may assume of localized programs.
#include "dialects/CCL/IR/CCLOps.h"
#include "lib/Conversion/FlowToCCL/LocalizedProgram.h"
#include "lib/Conversion/FlowToCCL/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace flow;

namespace flow {
#define GEN_PASS_DEF_VERIFYLOCALIZATION
#include "lib/Conversion/FlowToCCL/Passes.h.inc"
} // namespace flow

namespace {
/// A collective, or the border of a region that holds some.
struct Event {
  std::string label; // all that classes of a stage must agree on
  Operation *op;
  unsigned depth; // of regions with collectives
};
using Events = SmallVector<Event>;
} // namespace

//===----------------------------------------------------------------------===//
// Local types
//===----------------------------------------------------------------------===//

static LogicalResult verifyValue(const ClassFunction &c, MeshAttr mesh, Type type,
                                 FailureOr<ValueOrigin> origin, const Twine &what) {
  func::FuncOp function = c.function;
  if (failed(origin))
    return failure();
  if (!origin->type) {
    if (isa<ShapedType>(type))
      return function.emitError("expected 'flow.dist' on ") << what;
    return success();
  }
  if (origin->type.getMesh() != mesh)
    return function.emitError(what)
           << " lives on " << origin->type.getMesh() << ", expected " << mesh;
  // Sizes fall along each axis, so the first and the last rank bound all others.
  SmallVector<int64_t> last = llvm::map_to_vector(c.box.hi, [](int64_t hi) { return hi - 1; });
  for (ArrayRef<int64_t> corner : {ArrayRef(c.box.lo), ArrayRef(last)})
    if (Type local = localTypeOf(origin->type, RankBox::single(corner)); local != type)
      return function.emitError(what)
             << " has type " << type << ", expected " << local << " of " << origin->type;
  return success();
}

static LogicalResult verifyTied(const ClassFunction &c, unsigned result) {
  func::FuncOp function = c.function;
  auto tied = function.getResultAttrOfType<IntegerAttr>(result, "flow.tied");
  if (!tied)
    return success();
  if (tied.getInt() < 0 || tied.getInt() >= function.getNumArguments())
    return function.emitError("result ") << result << " is tied to argument " << tied.getInt()
                                         << " of " << function.getNumArguments();
  if (function.getArgAttr(tied.getInt(), "flow.dist") !=
      function.getResultAttr(result, "flow.dist"))
    return function.emitError("result ") << result << " and argument " << tied.getInt()
                                         << ", which it replaces, are held differently";
  return success();
}

static LogicalResult verifyTypes(const ClassFunction &c, MeshAttr mesh) {
  func::FuncOp function = c.function;
  for (unsigned i = mesh.getNumAxes(); i < function.getNumArguments(); ++i)
    if (failed(verifyValue(c, mesh, function.getArgumentTypes()[i], originOfArgument(function, i),
                           "argument " + Twine(i))))
      return failure();
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (failed(verifyValue(c, mesh, function.getResultTypes()[i], originOfResult(function, i),
                           "result " + Twine(i))) ||
        failed(verifyTied(c, i)))
      return failure();
  WalkResult result = function.walk([&](Operation *op) -> WalkResult {
    if (op->getName().getDialectNamespace() == FlowDialect::getDialectNamespace())
      return op->emitOpError("does not belong into a class function");
    for (Type type : op->getResultTypes()) {
      if (isa<DistType>(type))
        return op->emitOpError("makes a distributed value in a class function");
      if (auto shaped = dyn_cast<ShapedType>(type); shaped && !shaped.hasStaticShape())
        return op->emitOpError("expected static shapes, got ") << type;
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Order of collectives
//===----------------------------------------------------------------------===//

static void collectEvents(Block &block, unsigned depth, Events &events) {
  for (Operation &op : block) {
    std::string label;
    llvm::raw_string_ostream os(label);
    os << op.getName();
    if (isCollective(&op)) {
      if (auto how = op.getAttrOfType<ccl::ReductionAttr>("reduction"))
        os << " " << ccl::stringifyReduction(how.getValue());
      for (StringRef name : {"axes", "global", "dim", "stage", "channel"})
        if (Attribute attr = op.getAttr(name))
          os << " " << name << " " << attr;
      events.push_back({label, &op, depth});
    } else if (holdsCollective(&op)) {
      events.push_back({label, &op, depth});
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          collectEvents(inner, depth + 1, events);
      events.push_back({"end of " + label, &op, depth});
    }
  }
}

static LogicalResult verifySameOrder(const ClassFunction &a, const Events &eventsA,
                                     const ClassFunction &b, const Events &eventsB) {
  func::FuncOp functionA = a.function, functionB = b.function;
  for (auto [x, y] : llvm::zip(eventsA, eventsB))
    if (x.label != y.label) {
      InFlightDiagnostic error = y.op->emitError("class function '")
                                 << functionB.getName() << "' issues '" << y.label << "' where '"
                                 << functionA.getName() << "' issues '" << x.label << "'";
      error.attachNote(x.op->getLoc()) << "see here";
      return error;
    }
  if (eventsA.size() != eventsB.size())
    return functionB.emitError("has ") << eventsB.size() << " collectives and regions with some, '"
                                       << functionA.getName() << "' has " << eventsA.size();
  return success();
}

/// Whether some rank of `a` and some of `b` are in one group over `axes`.
static bool meet(const RankBox &a, const RankBox &b, ArrayRef<size_t> axes) {
  for (size_t axis = 0; axis < a.lo.size(); ++axis)
    if (!llvm::is_contained(axes, axis) && (a.lo[axis] >= b.hi[axis] || b.lo[axis] >= a.hi[axis]))
      return false;
  return true;
}

static LogicalResult verifyBlocks(ArrayRef<ClassFunction> classes, ArrayRef<Events> events,
                                  MeshAttr mesh) {
  for (size_t position = 0; position < events[0].size(); ++position) {
    auto names = events[0][position].op->getAttrOfType<ArrayAttr>("axes");
    if (!names || !isCollective(events[0][position].op))
      continue;
    SmallVector<size_t> axes;
    int64_t members = 1;
    for (Attribute name : names) {
      auto axis = mesh.findAxis(cast<StringAttr>(name).getValue());
      if (!axis)
        return events[0][position].op->emitOpError("the mesh has no axis ") << name;
      axes.push_back(*axis);
      members *= mesh.getAxisSizes()[*axis];
    }
    for (size_t i = 0; i < classes.size(); ++i) {
      Operation *x = events[i][position].op;
      if (!isa<ccl::AllReduceOp>(x)) {
        Value blocks = isa<ccl::ReduceScatterOp>(x) ? x->getOperand(0) : x->getOperand(1);
        if (int64_t got = cast<RankedTensorType>(blocks.getType()).getDimSize(0); got != members)
          return x->emitOpError("expected ") << members << " blocks, one per member, got " << got;
      }
      for (size_t j = 0; j < i; ++j) {
        Operation *y = events[j][position].op;
        if (meet(classes[i].box, classes[j].box, axes) &&
            x->getOperandTypes() != y->getOperandTypes()) {
          InFlightDiagnostic error = x->emitOpError("moves blocks of type ")
                                     << x->getOperand(0).getType()
                                     << ", its peers in another class "
                                     << y->getOperand(0).getType();
          error.attachNote(y->getLoc()) << "see here";
          return error;
        }
      }
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Channels between stages
//===----------------------------------------------------------------------===//

namespace {
struct Channel {
  int64_t from = -1, to = -1; // stages
  size_t send = 0, recv = 0;  // positions among the stage's events
};
} // namespace

/// The stage that an op of the stage `own` names, checked.
template <typename OpTy> static FailureOr<int64_t> peerOf(OpTy op, int64_t own, size_t stages) {
  int64_t peer = op.getStage();
  if (peer == own || peer >= static_cast<int64_t>(stages))
    return op.emitOpError("names stage ")
           << peer << " in a program of " << stages << " stages, on stage " << own;
  return peer;
}

static LogicalResult verifyChannels(const LocalizedProgram &program,
                                    ArrayRef<SmallVector<Events>> events) {
  llvm::MapVector<int64_t, Channel> channels;
  size_t stages = program.stages.size();
  for (auto [stage, ofClasses] : llvm::enumerate(events)) {
    if (ofClasses.empty())
      continue;
    for (auto [position, event] : llvm::enumerate(ofClasses[0])) {
      if (auto send = dyn_cast<ccl::SendOp>(event.op)) {
        FailureOr<int64_t> peer = peerOf(send, stage, stages);
        if (failed(peer))
          return failure();
        Channel &channel = channels[send.getChannel()];
        if (channel.from >= 0)
          return send.emitOpError("channel ") << send.getChannel() << " is sent on twice";
        channel.from = stage;
        channel.send = position;
        if (channel.to < 0)
          channel.to = -2 - *peer;
        else if (channel.to != *peer)
          return send.emitOpError("channel ")
                 << send.getChannel() << " is received on stage " << channel.to;
      }
    }
  }
  for (auto [stage, ofClasses] : llvm::enumerate(events)) {
    if (ofClasses.empty())
      continue;
    for (auto [position, event] : llvm::enumerate(ofClasses[0])) {
      auto recv = dyn_cast<ccl::RecvOp>(event.op);
      if (!recv)
        continue;
      FailureOr<int64_t> peer = peerOf(recv, stage, stages);
      if (failed(peer))
        return failure();
      auto it = channels.find(recv.getChannel());
      if (it == channels.end() || it->second.from != *peer)
        return recv.emitOpError("nobody on stage ")
               << *peer << " sends on channel " << recv.getChannel();
      Channel &channel = it->second;
      if (channel.to >= 0)
        return recv.emitOpError("channel ") << recv.getChannel() << " is received twice";
      if (channel.to != -2 - static_cast<int64_t>(stage))
        return recv.emitOpError("channel ")
               << recv.getChannel() << " goes to stage " << -2 - channel.to;
      channel.to = stage;
      channel.recv = position;
    }
  }
  for (auto &[number, channel] : channels) {
    Operation *send = events[channel.from][0][channel.send].op;
    if (channel.to < 0)
      return send->emitOpError("nobody on stage ")
             << -2 - channel.to << " receives on channel " << number;
    if (events[channel.from][0][channel.send].depth != events[channel.to][0][channel.recv].depth)
      return send->emitOpError("channel ") << number << " is received in another loop or branch";
    for (auto [i, a] : llvm::enumerate(program.stages[channel.from]))
      for (auto [j, b] : llvm::enumerate(program.stages[channel.to])) {
        Operation *x = events[channel.from][i][channel.send].op;
        Operation *y = events[channel.to][j][channel.recv].op;
        if (meet(a.box, b.box, {}) && x->getOperand(0).getType() != y->getOperand(0).getType())
          return y->emitOpError("receives ")
                 << y->getOperand(0).getType() << " on channel " << number << ", its peer sends "
                 << x->getOperand(0).getType();
      }
  }
  return success();
}

/// Stages meet at each channel in turn: none waits for one that waits for it.
static LogicalResult verifyNoDeadlock(ArrayRef<SmallVector<Events>> events) {
  SmallVector<ArrayRef<Event>> rest;
  for (const SmallVector<Events> &ofClasses : events)
    rest.push_back(ofClasses.empty() ? ArrayRef<Event>() : ArrayRef<Event>(ofClasses[0]));
  bool progress = true;
  while (progress) {
    progress = false;
    for (ArrayRef<Event> &own : rest)
      while (!own.empty() && !isa<ccl::SendOp, ccl::RecvOp>(own[0].op)) {
        own = own.drop_front();
        progress = true;
      }
    for (ArrayRef<Event> &own : rest) {
      auto send = own.empty() ? ccl::SendOp() : dyn_cast<ccl::SendOp>(own[0].op);
      if (!send)
        continue;
      ArrayRef<Event> &peer = rest[send.getStage()];
      auto recv = peer.empty() ? ccl::RecvOp() : dyn_cast<ccl::RecvOp>(peer[0].op);
      if (!recv || recv.getChannel() != send.getChannel())
        continue;
      own = own.drop_front();
      peer = peer.drop_front();
      progress = true;
    }
  }
  for (ArrayRef<Event> own : rest)
    if (!own.empty())
      return own[0].op->emitOpError("waits for ever: its peer stands at another channel");
  return success();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

static LogicalResult verifyProgram(const LocalizedProgram &program) {
  SmallVector<SmallVector<Events>> events(program.stages.size());
  for (auto [stage, classes] : llvm::enumerate(program.stages)) {
    MeshAttr mesh = program.mesh.atStage(stage);
    for (const ClassFunction &c : classes) {
      func::FuncOp function = c.function;
      if (function->getAttr("flow.mesh") != mesh)
        return function.emitError("expected 'flow.mesh' to be ") << mesh;
      if (failed(verifyTypes(c, mesh)))
        return failure();
      collectEvents(function.getBody().front(), 0, events[stage].emplace_back());
      if (failed(verifySameOrder(classes[0], events[stage][0], c, events[stage].back())))
        return failure();
    }
    if (!classes.empty() && failed(verifyBlocks(classes, events[stage], mesh)))
      return failure();
  }
  if (failed(verifyChannels(program, events)))
    return failure();
  return verifyNoDeadlock(events);
}

namespace {
struct VerifyLocalization : flow::impl::VerifyLocalizationBase<VerifyLocalization> {
  void runOnOperation() override {
    auto programs = readLocalizedPrograms(getOperation());
    if (failed(programs))
      return signalPassFailure();
    for (const LocalizedProgram &program : *programs)
      if (failed(verifyProgram(program)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
