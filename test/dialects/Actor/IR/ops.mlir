// RUN: flow-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: actor.plan @m axes ["dp"] sizes [2] stages 2
actor.plan @m axes ["dp"] sizes [2] stages 2 {
  // CHECK: %[[STATE:.*]] = actor.state "w" stage 0 parameter initial @w : tensor<5x4xf32>
  %w = actor.state "w" stage 0 parameter initial @w : tensor<5x4xf32>
  // CHECK: actor.program "step" micro_batches 2 template "1f1b" expected_ns 1000 {
  actor.program "step" micro_batches 2 template "1f1b" expected_ns 1000 {
    // CHECK: %[[X:.*]] = actor.tensor "x" input stage 0 fallback @x0 : tensor<6x5xf32>
    %x = actor.tensor "x" input stage 0 fallback @x0 : tensor<6x5xf32>
    // CHECK: actor.tensor "label" label stage 1 classes 10 unsigned : tensor<6xi32>
    %l = actor.tensor "label" label stage 1 classes 10 unsigned : tensor<6xi32>
    // CHECK: actor.class stage 0 from [0] to [2] arena_bytes 1024 {
    actor.class stage 0 from [0] to [2] arena_bytes 1024 {
      // CHECK: %[[RX:.*]] = actor.register "x" micro bytes 60 of %[[X]] : !actor.tensor
      %rx = actor.register "x" micro bytes 60 of %x : !actor.tensor
      // CHECK: actor.register "w" step bytes 80 of %[[STATE]] : !actor.state
      %rw = actor.register "w" step bytes 80 of %w : !actor.state
      // CHECK: actor.register "w" step bytes 80 updated of %[[STATE]] : !actor.state
      %rw1 = actor.register "w" step bytes 80 updated of %w : !actor.state
      %zero = actor.register "zero" step bytes 80
      %acc = actor.register "acc" micro bytes 80
      %red = actor.register "red" step bytes 80
      // A graph: the register of the micro-batch before may stand later.
      // CHECK: actor.carried %{{.*}}, %{{.*}}
      %before = actor.carried %zero, %acc
      // CHECK: %[[LOAD:load_x]] = actor.load "x" forward micro -> (%[[RX]])
      %a0 = actor.load "x" forward micro -> (%rx)
      // CHECK: actor.kernel @k0 "zero" backward step () -> (%{{.*}})
      %a1 = actor.kernel @k0 "zero" backward step () -> (%zero)
      // CHECK: actor.kernel @k1 "acc" backward micro (%{{.*}}, %{{.*}}) -> (%{{.*}}) inplace [1] {flops = 9 : i64}
      %a2 = actor.kernel @k1 "acc" backward micro (%rx, %before) -> (%acc) inplace [1] {flops = 9}
      // CHECK: actor.send "x" forward micro to 1 channel 0 elements 15 : f32 (%{{.*}})
      %a3 = actor.send "x" forward micro to 1 channel 0 elements 15 : f32 (%rx)
      // CHECK: actor.collective all_reduce by sum "acc" backward step axes ["dp"] elements 20 : f32 (%{{.*}}) -> (%{{.*}})
      %a4 = actor.collective all_reduce by sum "acc" backward step axes ["dp"] elements 20 : f32 (%acc) -> (%red)
      // CHECK: actor.copy "w" update step (%{{.*}}) -> (%{{.*}})
      %a5 = actor.copy "w" update step (%red) -> (%rw1)
      // CHECK: actor.order io {
      actor.order io {
        // CHECK: actor.fire %[[LOAD]] micro_batch 0 at [0] after [#actor.wait<compute 3, steps_before = 2>, #actor.wait<comm 1, steps_before = 1>]
        actor.fire %a0 micro_batch 0 at [0] after [#actor.wait<compute 3, steps_before = 2>, #actor.wait<comm 1, steps_before = 1>]
        actor.fire %a0 micro_batch 1 at [128]
      }
      actor.order compute {
        actor.fire %a1 micro_batch 0 at [256]
        // CHECK: actor.fire %{{.*}} micro_batch 0 at [0, 256, 256] after [#actor.wait<io 1>]
        actor.fire %a2 micro_batch 0 at [0, 256, 256] after [#actor.wait<io 1>]
        actor.fire %a2 micro_batch 1 at [128, 256, 256] after [#actor.wait<io 2>]
        actor.fire %a5 micro_batch 0 at [384, 0] after [#actor.wait<comm 3>]
      }
      actor.order comm {
        actor.fire %a3 micro_batch 0 at [0] after [#actor.wait<io 1>]
        actor.fire %a3 micro_batch 1 at [128] after [#actor.wait<io 2>]
        actor.fire %a4 micro_batch 0 at [256, 384] after [#actor.wait<compute 3>]
      }
    }
    actor.class stage 1 from [0] to [2] {
      %rx = actor.register "x" micro bytes 60
      // CHECK: actor.recv "x" forward micro from 0 channel 0 elements 15 : f32 -> (%{{.*}})
      %a0 = actor.recv "x" forward micro from 0 channel 0 elements 15 : f32 -> (%rx)
    }
  }
}
