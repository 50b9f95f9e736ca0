// RUN: flow-opt %s --flow-schedule="comm=late" --flow-verify-schedule | FileCheck %s --check-prefix=LATE
// RUN: flow-opt %s --flow-schedule="comm=early" --flow-verify-schedule | FileCheck %s --check-prefix=EARLY

// The reduction of a gradient waits for the last backward kernel, or only for its own.
// LATE: actor.fire %comm_reduce2 {{.*}} after [#actor.wait<compute 2>]
// EARLY: actor.fire %comm_reduce2 {{.*}} after [#actor.wait<compute 1>]
actor.plan @m axes ["dp"] sizes [2] stages 1 {
  %w = actor.state "w" stage 0 parameter : tensor<10xf32>
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "w" step bytes 40 of %w : !actor.state
      %n = actor.register "w" step bytes 40 updated of %w : !actor.state
      %g2 = actor.register "g2" step bytes 40
      %b2 = actor.kernel @b "backward2" backward step (%r) -> (%g2)
      %g1 = actor.register "g1" step bytes 40
      %b1 = actor.kernel @b "backward1" backward step (%g2) -> (%g1)
      %s2 = actor.register "s2" step bytes 40
      %a2 = actor.collective all_reduce by sum "reduce2" backward step axes ["dp"] elements 10 : f32 (%g2) -> (%s2)
      %u = actor.kernel @u "update" update step (%r, %s2, %g1) -> (%n) inplace [0]
    }
  }
}
