// Gives every stream a total order, every firing its waits and offsets.
#include "lib/Scheduling/ListSchedule.h"
#include "lib/Scheduling/Packing.h"
#include "lib/Scheduling/Passes.h"
#include "lib/Scheduling/StepGraph.h"
#include "lib/Scheduling/UnitTemplates.h"
#include "lib/Scheduling/Waits.h"

namespace flow {
#define GEN_PASS_DEF_SCHEDULE
#include "lib/Scheduling/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;
using namespace flow::scheduling;

/// Adds a scratch register to every kernel whose function asks for one.
static void addScratch(actor::ClassOp cls, SymbolTable &symbols) {
  for (auto kernel : llvm::make_early_inc_range(cls.getBody().getOps<actor::KernelOp>())) {
    Operation *function = symbols.lookup(kernel.getKernel());
    auto bytes =
        function ? function->getAttrOfType<IntegerAttr>("flow.scratch_bytes") : IntegerAttr();
    if (!bytes || bytes.getInt() <= 0 || !kernel.getScratch().empty())
      continue;
    OpBuilder builder(kernel);
    auto reg =
        actor::RegisterOp::create(builder, kernel.getLoc(), builder.getType<actor::RegisterType>(),
                                  (kernel.getActorName() + ".scratch").str(), kernel.getRate(),
                                  bytes.getInt(), false, Value());
    kernel.getScratchMutable().assign(reg.getReg());
  }
}

/// Names the transitions that can never start.
static void reportStuck(const StepGraph &graph, const Orders &orders) {
  InFlightDiagnostic diag =
      actor::ProgramOp(graph.program).emitError("no order lets every actor fire");
  for (auto [i, t] : llvm::enumerate(graph.transitions))
    if (orders.startNs[i] < 0 && !t.members.empty()) {
      const ClassGraph &cls = graph.classes[t.members[0].cls];
      actor::ActorOpInterface op = cls.actors[cls.firings[t.members[0].firing].actor].op;
      diag.attachNote(op.getLoc())
          << "'" << op.getActorName() << "' of stage " << cls.stage << " never gets what it needs";
      return;
    }
}

/// Micro-batches of a class whose forward part is done and whose backward part
/// is not, at most.
static unsigned countInFlight(const StepGraph &graph, const ClassGraph &cls,
                              ArrayRef<unsigned> compute) {
  std::vector<unsigned> open(graph.microBatches);
  for (const Firing &firing : cls.firings)
    if (firing.stream == actor::Stream::Compute &&
        cls.actors[firing.actor].rate == actor::Rate::Micro &&
        cls.actors[firing.actor].op.getPhase() == actor::Phase::Backward)
      ++open[firing.microBatch];
  std::vector<char> live(graph.microBatches);
  unsigned count = 0, peak = 0;
  for (unsigned f : compute) {
    const Firing &firing = cls.firings[f];
    if (cls.actors[firing.actor].rate != actor::Rate::Micro)
      continue;
    unsigned m = firing.microBatch;
    actor::Phase phase = cls.actors[firing.actor].op.getPhase();
    if (phase == actor::Phase::Forward && !live[m] && open[m] > 0) {
      live[m] = true;
      peak = std::max(peak, ++count);
    }
    if (phase == actor::Phase::Backward && --open[m] == 0 && live[m])
      --count;
  }
  return peak;
}

static void writeOrders(StepGraph &graph, unsigned c, const Orders &orders, const WaitGraph &waits,
                        int64_t arenaBytes) {
  ClassGraph &cls = graph.classes[c];
  cls.op.setArenaBytes(arenaBytes);
  OpBuilder builder = OpBuilder::atBlockEnd(&cls.op.getBody().front());
  for (unsigned s = 0; s < numStreams; ++s) {
    auto order = actor::OrderOp::create(builder, cls.op.getLoc(), static_cast<actor::Stream>(s));
    OpBuilder inside = OpBuilder::atBlockEnd(&order.getBody().emplaceBlock());
    for (unsigned f : orders.streams[c][s]) {
      const Firing &firing = cls.firings[f];
      SmallVector<int64_t> offsets;
      for (unsigned buffer : firing.buffers)
        offsets.push_back(cls.buffers[buffer].offset);
      SmallVector<Attribute> waitAttrs;
      for (Wait wait : waits.waits(f)) {
        int64_t perStep = waits.firings(wait.stream);
        int64_t stepsBefore = wait.count > 0 ? 0 : wait.count > -perStep ? 1 : 2;
        waitAttrs.push_back(actor::WaitAttr::get(builder.getContext(),
                                                 static_cast<actor::Stream>(wait.stream),
                                                 wait.count + stepsBefore * perStep, stepsBefore));
      }
      actor::ActorOpInterface op = cls.actors[firing.actor].op;
      actor::FireOp::create(inside, op.getLoc(), op->getResult(0), firing.microBatch, offsets,
                            builder.getArrayAttr(waitAttrs));
    }
  }
}

namespace {
struct Schedule : flow::impl::ScheduleBase<Schedule> {
  using ScheduleBase::ScheduleBase;

  void runOnOperation() override {
    const UnitTemplate *units = findUnitTemplate(unitTemplate);
    if (!units) {
      InFlightDiagnostic diag = getOperation().emitError("unknown template '")
                                << unitTemplate << "', expected one of";
      for (const UnitTemplate &known : unitTemplates())
        diag << " " << known.name;
      return signalPassFailure();
    }
    if (comm != "early" && comm != "late") {
      getOperation().emitError("unknown comm '") << comm << "', expected early or late";
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    WalkResult result = getOperation().walk([&](actor::ProgramOp program) {
      for (auto cls : program.getBody().getOps<actor::ClassOp>()) {
        for (auto order : llvm::make_early_inc_range(cls.getBody().getOps<actor::OrderOp>()))
          order.erase();
        addScratch(cls, symbols);
      }
      return failed(schedule(program, *units)) ? WalkResult::interrupt() : WalkResult::skip();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  Orders order(StepGraph &graph, const UnitTemplate &units) {
    if (seed != 0)
      return listSchedule(graph, randomPriorities(graph, seed));
    return listSchedule(graph, prioritize(graph, units));
  }

  LogicalResult schedule(actor::ProgramOp program, const UnitTemplate &units) {
    FailureOr<StepGraph> expanded = expand(program, {gflops, memoryGBps, commGBps, commLatencyNs});
    if (failed(expanded))
      return failure();
    StepGraph &graph = *expanded;
    if (comm == "late")
      delayReductions(graph);
    if (seed == 0)
      limitInFlight(graph, units);
    Orders orders = order(graph, units);
    if (!orders.isComplete) {
      reportStuck(graph, orders);
      return failure();
    }
    program.setTemplateName(seed == 0 ? StringRef(units.name) : StringRef("random"));
    program.setExpectedNs(orders.timeNs);
    for (unsigned c = 0; c < graph.classes.size(); ++c) {
      WaitGraph waits(graph, c, orders);
      Memory memory = packBuffers(graph, c, orders, waits);
      waits.addStepBoundary();
      writeOrders(graph, c, orders, waits, memory.arenaBytes);
      if (report)
        emitRemark(graph.classes[c].op.getLoc(), "program '")
            << program.getProgramName() << "' stage " << graph.classes[c].stage << ": "
            << memory.liveBytes << " bytes live at once, " << memory.arenaBytes
            << " bytes of arena, "
            << countInFlight(graph, graph.classes[c],
                             orders.streams[c][static_cast<unsigned>(actor::Stream::Compute)])
            << " micro-batches in flight, " << orders.timeNs << " ns expected";
    }
    return success();
  }
};
} // namespace
