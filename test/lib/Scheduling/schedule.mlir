// RUN: flow-opt %s --split-input-file --flow-schedule --flow-verify-schedule | FileCheck %s

// A gradient is reduced under the backward part of the layer before; the update
// waits for it. The load of the next step waits for what two steps before read
// that slot.
// CHECK-LABEL: actor.plan @overlap
// CHECK: actor.order compute {
// CHECK-NEXT: actor.fire %run_forward micro_batch 0 at [{{.*}}] after [#actor.wait<io 1>]
// CHECK-NEXT: actor.fire %run_backward2 micro_batch 0 at [{{[^]]*}}]{{$}}
// CHECK-NEXT: actor.fire %run_backward1 micro_batch 0 at [{{[^]]*}}]{{$}}
// CHECK-NEXT: actor.fire %run_update2 micro_batch 0 at [{{.*}}] after [#actor.wait<comm 1>]
// CHECK-NEXT: actor.fire %run_update1 micro_batch 0 at [{{.*}}] after [#actor.wait<comm 2>]
// CHECK: actor.order comm {
// CHECK-NEXT: actor.fire %comm_reduce2 micro_batch 0 at [{{.*}}] after [#actor.wait<compute 2>]
// CHECK-NEXT: actor.fire %comm_reduce1 micro_batch 0 at [{{.*}}] after [#actor.wait<compute 3>]
// CHECK: actor.order io {
// CHECK-NEXT: actor.fire %load_x micro_batch 0 at [{{.*}}] after [#actor.wait<compute 3, steps_before = 2>]
actor.plan @overlap axes ["dp"] sizes [2] stages 1 {
  %w1 = actor.state "w1" stage 0 parameter : tensor<1000xf32>
  %w2 = actor.state "w2" stage 0 parameter : tensor<1000xf32>
  actor.program "step" micro_batches 1 {
    %x = actor.tensor "x" input stage 0 : tensor<3x5xf32>
    actor.class stage 0 from [0] to [2] {
      %rx = actor.register "x" step bytes 60 of %x : !actor.tensor
      %l = actor.load "x" forward step -> (%rx)
      %r1 = actor.register "w1" step bytes 4000 of %w1 : !actor.state
      %r2 = actor.register "w2" step bytes 4000 of %w2 : !actor.state
      %n1 = actor.register "w1" step bytes 4000 updated of %w1 : !actor.state
      %n2 = actor.register "w2" step bytes 4000 updated of %w2 : !actor.state
      %y = actor.register "y" step bytes 48
      %f = actor.kernel @f "forward" forward step (%rx, %r1, %r2) -> (%y) {flops = 100000}
      %g2 = actor.register "g2" step bytes 4000
      %b2 = actor.kernel @b2 "backward2" backward step (%y, %r2) -> (%g2) {flops = 100000}
      %g1 = actor.register "g1" step bytes 4000
      %b1 = actor.kernel @b1 "backward1" backward step (%y, %g2, %rx, %r1) -> (%g1) {flops = 100000}
      %s1 = actor.register "s1" step bytes 4000
      %a1 = actor.collective all_reduce by sum "reduce1" backward step axes ["dp"] elements 1000 : f32 (%g1) -> (%s1)
      %s2 = actor.register "s2" step bytes 4000
      %a2 = actor.collective all_reduce by sum "reduce2" backward step axes ["dp"] elements 1000 : f32 (%g2) -> (%s2)
      %u1 = actor.kernel @u "update1" update step (%r1, %s1) -> (%n1) inplace [0]
      %u2 = actor.kernel @u "update2" update step (%r2, %s2) -> (%n2) inplace [0]
    }
  }
}

// -----

// Buffers share bytes where happens-before allows it: a chain of four needs two.
// CHECK-LABEL: actor.plan @packing
// CHECK: arena_bytes 640
actor.plan @packing axes ["rank"] sizes [1] stages 1 {
  actor.program "main" micro_batches 1 {
    %t = actor.tensor "y" output stage 0 : tensor<60xf32>
    actor.class stage 0 from [0] to [1] {
      %out = actor.register "y" step bytes 40 of %t : !actor.tensor
      %a = actor.register "a" step bytes 240
      %b = actor.register "b" step bytes 240
      %c = actor.register "c" step bytes 240
      %d = actor.register "d" step bytes 240
      %k0 = actor.kernel @k "k0" forward step () -> (%a)
      %k1 = actor.kernel @k "k1" forward step (%a) -> (%b)
      %k2 = actor.kernel @k "k2" forward step (%b) -> (%c)
      %k3 = actor.kernel @k "k3" forward step (%c) -> (%d)
      %k4 = actor.kernel @k "k4" forward step (%d) -> (%out)
    }
  }
}

// -----

// In place only if nobody else reads the input: k1 takes over a, k2 must not
// take over b, which k3 reads.
// CHECK-LABEL: actor.plan @in_place
// CHECK: actor.fire %run_k0 micro_batch 0 at [[[A:[0-9]+]]]
// CHECK: actor.fire %run_k1 micro_batch 0 at [[[A]], [[A]]]
// CHECK: actor.fire %run_k2 micro_batch 0 at [[[A]], [[C:[0-9]+]]]
// CHECK-NOT: at [[[A]], [[C]]]
actor.plan @in_place axes ["rank"] sizes [1] stages 1 {
  actor.program "main" micro_batches 1 {
    actor.class stage 0 from [0] to [1] {
      %a = actor.register "a" step bytes 240
      %b = actor.register "b" step bytes 240
      %c = actor.register "c" step bytes 240
      %d = actor.register "d" step bytes 240
      %k0 = actor.kernel @k "k0" forward step () -> (%a)
      %k1 = actor.kernel @k "k1" forward step (%a) -> (%b) inplace [0]
      %k2 = actor.kernel @k "k2" forward step (%b) -> (%c) inplace [0]
      %k3 = actor.kernel @k "k3" forward step (%b, %c) -> (%d)
    }
  }
}

// -----

// Scratch that the kernel asks for.
func.func private @k() attributes {flow.scratch_bytes = 100 : i64}
// CHECK-LABEL: actor.plan @scratch
// CHECK: %[[S:.*]] = actor.register "k0.scratch" step bytes 100
// CHECK: actor.kernel @k "k0" forward step () -> (%{{.*}}) scratch(%[[S]])
// CHECK: actor.fire %run_k0 micro_batch 0 at [{{[0-9]+}}, {{[0-9]+}}]
actor.plan @scratch axes ["rank"] sizes [1] stages 1 {
  actor.program "main" micro_batches 1 {
    actor.class stage 0 from [0] to [1] {
      %a = actor.register "a" step bytes 240
      %k0 = actor.kernel @k "k0" forward step () -> (%a)
    }
  }
}

// -----

// Blocks of a collective over dp may differ between classes that differ in tp.
// CHECK-LABEL: actor.plan @groups
// CHECK-COUNT-2: actor.fire %comm_c
actor.plan @groups axes ["dp", "tp"] sizes [2, 2] stages 1 {
  actor.program "main" micro_batches 1 {
    actor.class stage 0 from [0, 0] to [2, 1] {
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %k = actor.kernel @k "k" forward step () -> (%a)
      %c = actor.collective all_reduce by sum "c" forward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
    }
    actor.class stage 0 from [0, 1] to [2, 2] {
      %a = actor.register "a" step bytes 12
      %b = actor.register "b" step bytes 12
      %k = actor.kernel @k "k" forward step () -> (%a)
      %c = actor.collective all_reduce by sum "c" forward step axes ["dp"] elements 3 : f32 (%a) -> (%b)
    }
  }
}
