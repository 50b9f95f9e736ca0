// Orders, waits and offsets of actor programs.
#ifndef FLOW_SCHEDULING_PASSES_TD
#define FLOW_SCHEDULING_PASSES_TD

include "mlir/Pass/PassBase.td"

def Schedule : Pass<"flow-schedule", "::mlir::ModuleOp"> {
  let summary = "give every stream a total order, every firing its waits and offsets";
  let description = [{
    Each program is expanded over its micro-batches and scheduled as one graph
    over all classes of all stages: a collective is one transition that occupies
    the comm stream of every class of its stage, a send and its receive one that
    occupies those of two stages. So all members reach their exchanges in one
    order, and the joined graph is acyclic.

    - *Units.* `template` orders the units (phase, micro-batch) of a stage: `1f1b`
      or `gpipe`. The order gives priorities, and a forward unit waits until as
      many backward units are done as the order says, so that no more than that
      many micro-batches are in flight.
    - *Actors* are list-scheduled under it by estimated cost. Exchanges go to
      the background: a gradient is reduced as soon as it is there, under the
      backward part of other layers. With `comm=late` gradients are reduced after
      the whole backward part.
    - *Waits* between streams are those that vector clocks do not imply, for the
      hazards within a step and between steps.
    - *Offsets.* Two buffers share bytes only if every use of one happens before
      the other is written, in every timing. A kernel that may write over an
      input does so when nobody else reads it. What is exchanged with the world
      has two slots, by parity of the step.

    A kernel symbol with `flow.scratch_bytes` gets a scratch register.
    `report` prints a remark per class: bytes that are live at once in the
    expected timing, bytes of the arena, micro-batches in flight. `seed` takes
    random priorities instead of a template; results never depend on the order.

    ```mlir
    actor.order compute {
      actor.fire %run_fc micro_batch 0 at [0, 128] after [#actor.wait<io 1>]
    }
    ```
  }];
  let options = [
    Option<"unitTemplate", "template", "std::string", "\"1f1b\"", "order of the units of a stage: 1f1b or gpipe">,
    Option<"comm", "comm", "std::string", "\"early\"", "when gradients are reduced: early or late">,
    Option<"seed", "seed", "uint64_t", "0", "random priorities if not 0">,
    Option<"report", "report", "bool", "false", "print a remark about the memory of each class">,
    Option<"gflops", "gflops", "double", "20.0", "estimated 10^9 operations per second of a rank">,
    Option<"memoryGBps", "memory-gbps", "double", "10.0", "estimated 10^9 bytes per second of a kernel">,
    Option<"commGBps", "comm-gbps", "double", "5.0", "estimated 10^9 bytes per second of a collective">,
    Option<"commLatencyNs", "comm-latency-ns", "double", "2000.0", "estimated start-up of a collective">];
  let dependentDialects = ["::flow::actor::ActorDialect"];
}

def VerifySchedule : Pass<"flow-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "check the tables of every program, reading nothing but the tables";
  let description = [{
    Runs three steps of all classes of all stages together, each stream in its
    order, with rendezvous of exchanges:

    - no stream is ever stuck; else the cycle is named
    - members of an exchange reach the same exchange
    - every read happens after the write of the instance that it means, at the
      same offset
    - no other write to those bytes can happen in between, in any timing, in
      the same step or in the ones before and after
    - every byte lies in the arena

    Classes stand for all their ranks: a cycle among ranks would be one among
    classes.
  }];
}

#endif
