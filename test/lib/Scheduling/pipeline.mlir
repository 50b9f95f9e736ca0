// RUN: flow-opt %s --flow-schedule="report" --flow-verify-schedule 2>%t.1f1b.txt | FileCheck %s --check-prefix=ONE
// RUN: FileCheck %s --check-prefix=ONE-REPORT --input-file=%t.1f1b.txt
// RUN: flow-opt %s --flow-schedule="template=gpipe report" --flow-verify-schedule 2>%t.gpipe.txt | FileCheck %s --check-prefix=GPIPE
// RUN: FileCheck %s --check-prefix=GPIPE-REPORT --input-file=%t.gpipe.txt
// RUN: flow-opt %s --flow-schedule="seed=1" --flow-verify-schedule | FileCheck %s --check-prefix=RANDOM
// RUN: flow-opt %s --flow-schedule="seed=2" --flow-verify-schedule
// RUN: flow-opt %s --flow-schedule="seed=3 comm=late" --flow-verify-schedule
// RUN: flow-opt %s --flow-schedule --flow-schedule="template=gpipe" --flow-verify-schedule | FileCheck %s --check-prefix=GPIPE

// Two stages, four micro-batches. Stage 0 runs one forward unit ahead and holds
// at most two micro-batches (S - s), stage 1 one. Any other order is right too.

// ONE-REPORT: program 'step' stage 0: {{.*}} 2 micro-batches in flight
// ONE-REPORT: program 'step' stage 1: {{.*}} 1 micro-batches in flight
// GPIPE-REPORT: program 'step' stage 0: {{.*}} 4 micro-batches in flight
// GPIPE-REPORT: program 'step' stage 1: {{.*}} 4 micro-batches in flight

// RANDOM: template "random"
// ONE: actor.program "step" micro_batches 4 template "1f1b"
// ONE: actor.class stage 0
// ONE: actor.order compute
// ONE-NEXT: actor.fire %run_zero
// ONE-NEXT: actor.fire %run_forward micro_batch 0
// ONE-NEXT: actor.fire %run_forward micro_batch 1
// ONE-NEXT: actor.fire %run_backward micro_batch 0
// ONE-NEXT: actor.fire %run_forward micro_batch 2
// ONE-NEXT: actor.fire %run_backward micro_batch 1
// ONE-NEXT: actor.fire %run_forward micro_batch 3
// ONE-NEXT: actor.fire %run_backward micro_batch 2
// ONE-NEXT: actor.fire %run_backward micro_batch 3
// ONE-NEXT: actor.fire %run_update
// ONE: actor.order comm
// ONE-NEXT: actor.fire %send_forward micro_batch 0
// ONE-NEXT: actor.fire %send_forward micro_batch 1
// ONE-NEXT: actor.fire %recv_backward micro_batch 0
// ONE: actor.class stage 1
// ONE: actor.order compute
// ONE-NEXT: actor.fire %run_forward micro_batch 0
// ONE-NEXT: actor.fire %run_backward micro_batch 0
// ONE-NEXT: actor.fire %run_forward micro_batch 1
// ONE-NEXT: actor.fire %run_backward micro_batch 1
// ONE-NEXT: actor.fire %run_forward micro_batch 2
// ONE-NEXT: actor.fire %run_backward micro_batch 2
// ONE-NEXT: actor.fire %run_forward micro_batch 3
// ONE-NEXT: actor.fire %run_backward micro_batch 3

// GPIPE: template "gpipe"
// GPIPE: actor.class stage 0
// GPIPE: actor.order compute
// GPIPE-NEXT: actor.fire %run_zero
// GPIPE-NEXT: actor.fire %run_forward micro_batch 0
// GPIPE-NEXT: actor.fire %run_forward micro_batch 1
// GPIPE-NEXT: actor.fire %run_forward micro_batch 2
// GPIPE-NEXT: actor.fire %run_forward micro_batch 3
// GPIPE-NEXT: actor.fire %run_backward micro_batch 0
// GPIPE-NEXT: actor.fire %run_backward micro_batch 1
actor.plan @m axes ["tp"] sizes [2] stages 2 {
  %w = actor.state "w" stage 0 parameter : tensor<5x4xf32>
  actor.program "step" micro_batches 4 {
    %x = actor.tensor "x" input stage 0 : tensor<3x5xf32>
    actor.class stage 0 from [0] to [2] {
      %rx = actor.register "x" micro bytes 60 of %x : !actor.tensor
      %l = actor.load "x" forward micro -> (%rx)
      %rw = actor.register "w" step bytes 80 of %w : !actor.state
      %rw1 = actor.register "w" step bytes 80 updated of %w : !actor.state
      %zero = actor.register "zero" step bytes 80
      %z = actor.kernel @zero "zero" forward step () -> (%zero) {bytes_moved = 80}
      %y = actor.register "y" micro bytes 48
      %f = actor.kernel @forward "forward" forward micro (%rx, %rw) -> (%y) {flops = 100000}
      %s = actor.send "forward" forward micro to 1 channel 0 elements 12 : f32 (%y)
      %dy = actor.register "dy" micro bytes 48
      %r = actor.recv "backward" backward micro from 1 channel 1 elements 12 : f32 -> (%dy)
      %before = actor.carried %zero, %acc
      %acc = actor.register "acc" micro bytes 80
      %b = actor.kernel @backward "backward" backward micro (%before, %y, %rx, %dy) -> (%acc) inplace [0] {flops = 200000}
      %u = actor.kernel @update "update" update step (%rw, %acc) -> (%rw1) inplace [0]
    }
    actor.class stage 1 from [0] to [2] {
      %x1 = actor.register "x" micro bytes 48
      %r = actor.recv "forward" forward micro from 0 channel 0 elements 12 : f32 -> (%x1)
      %y = actor.register "y" micro bytes 48
      %f = actor.kernel @forward "forward" forward micro (%x1) -> (%y) {flops = 100000}
      %dx = actor.register "dx" micro bytes 48
      %b = actor.kernel @backward "backward" backward micro (%x1, %y) -> (%dx) {flops = 200000}
      %s = actor.send "backward" backward micro to 0 channel 1 elements 12 : f32 (%dx)
    }
  }
}
