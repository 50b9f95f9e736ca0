// RUN: flow-opt %s --flow-actor-to-llvm | mlir-translate --mlir-to-llvmir -o %t.ll
// RUN: clang -I%source %S/Inputs/print_tables.c %t.ll -Wno-override-module -o %t.exe
// RUN: %t.exe | FileCheck %s

// What a C program that includes abi.h reads is what the plan says.
// CHECK: abi 1 kind 1 model m.onnx batch 6 loss 1 weights m.weights
// CHECK-NEXT: scalar lr = 0.25
// CHECK-NEXT: plan dp=1 tp=2 stages 2 state bytes 192
// CHECK-NEXT: state w dtype 0 stage 0 parameter 1 file 96 arena 0 shape 5 4 sbp 1/0/0/1 0/0/1/2
// CHECK-NEXT: state v dtype 0 stage 0 parameter 0 file -1 arena 64 shape 5 4 sbp 1/0/0/1 1/0/0/1
// CHECK-NEXT: program step micro-batches 2
// CHECK-NEXT: tensor x kind 1 dtype 7 stage 0 reg 0 optional 0 classes 0 default -1 shape 3 5 sbp 0/0/0/1 1/0/0/1
// CHECK-NEXT: tensor label kind 2 dtype 10 stage 1 reg 0 optional 0 classes 10 default -1 shape 3 sbp
// CHECK-NEXT: tensor loss kind 5 dtype 1 stage 1 reg 1 optional 0 classes 0 default -1 shape sbp 2/1/0/1 1/0/0/1
// CHECK-NEXT: class stage 0 lo 0 hi 2 arena 640
// CHECK-NEXT: register 0 kind 0 state 0 bytes 120 stride 128
// CHECK-NEXT: register 1 kind 1 state 0 bytes 48 stride 0
// CHECK-NEXT: register 2 kind 1 state 1 bytes 80 stride 0
// CHECK-NEXT: register 3 kind 0 state 0 bytes 10 stride 0
// CHECK-NEXT: register 4 kind 0 state 0 bytes 7 stride 0
// CHECK-NEXT: actor 0 'x' op 7 phase 0 stream 2 in 0 out 1 scratch 0 regs 0 axes 0 monoid 0 dtype 0 channel 0 elements 0 peer 0 tensor 0
// CHECK-NEXT: actor 1 'k' op 0 phase 1 stream 0 in 2 out 1 scratch 1 regs 0 1 3 4 axes 0 monoid 0 dtype 0 channel 0 elements 0 peer 0 tensor 0 kernel 77
// CHECK-NEXT: actor 2 's' op 5 phase 1 stream 1 in 1 out 0 scratch 0 regs 3 axes 0 monoid 0 dtype 4 channel 3 elements 10 peer 1 tensor 0
// CHECK-NEXT: stream 0 fires 1 mb 0 at 0 0 512 576 wait 2/0/1
// CHECK-NEXT: stream 0 fires 1 mb 1 at 256 0 512 576 wait 2/0/2 wait 1/1/2
// CHECK-NEXT: stream 1 fires 2 mb 0 at 512 wait 0/0/1
// CHECK-NEXT: stream 1 fires 2 mb 1 at 512 wait 0/0/2
// CHECK-NEXT: stream 2 fires 0 mb 0 at 0 wait 0/2/1
// CHECK-NEXT: stream 2 fires 0 mb 1 at 256
// CHECK-NEXT: class stage 1 lo 0 hi 2 arena 256
// CHECK: actor {{[0-9]+}} 'r' op 6 phase 1 stream 1 in 0 out 1 scratch 0 regs 2 axes 0 monoid 0 dtype 4 channel 3 elements 10 peer 0 tensor 0
// CHECK: actor {{[0-9]+}} 'c' op 1 phase 0 stream 1 in 1 out 1 scratch 0 regs 2 3 axes 2 monoid 3 dtype 8 channel 5 elements 10 peer 0 tensor 0
#m = #flow.mesh<"m", ["dp" = 1, "tp" = 2]>
module attributes {flow.executable = {kind = "trainer", model = "m.onnx", batch = 6 : i64, loss = "softmax_cross_entropy",
                                      weights_file = "m.weights", scalars = {lr = 0.25 : f64}}} {
  ml_program.global private @w(#flow.weights<"m.onnx", 0, 80> : tensor<5x4xf32>) : tensor<5x4xf32> {flow.file_offset = 96 : i64}
  ml_program.global private @zero(dense<0.0> : tensor<5x4xf32>) : tensor<5x4xf32>
  llvm.func @k(%buffers: !llvm.ptr, %coords: !llvm.ptr) {
    %0 = llvm.load %buffers : !llvm.ptr -> !llvm.ptr
    %1 = llvm.mlir.constant(77 : i64) : i64
    llvm.store %1, %0 : i64, !llvm.ptr
    llvm.return
  }
  actor.plan @m axes ["dp", "tp"] sizes [1, 2] stages 2 {
    %w = actor.state "w" stage 0 parameter initial @w : !flow.dist<5x4xf32, #m, [B, S(1, unit = 2)]>
    %v = actor.state "v" stage 0 initial @zero : !flow.dist<5x4xf32, #m, [B, B]>
    actor.program "step" micro_batches 2 {
      %x = actor.tensor "x" input stage 0 : !flow.dist<3x5xi64, #m, [S(0), B]>
      %label = actor.tensor "label" label stage 1 classes 10 unsigned : tensor<3xi32>
      %loss = actor.tensor "loss" loss stage 1 : !flow.dist<f64, #m, [P(max), B]>
      actor.class stage 0 from [0, 0] to [1, 2] arena_bytes 640 {
        %rx = actor.register "x" micro bytes 120 of %x : !actor.tensor
        %rw = actor.register "w" step bytes 48 of %w : !actor.state
        %rv = actor.register "v" step bytes 80 of %v : !actor.state
        %y = actor.register "y" micro bytes 10
        %scratch = actor.register "scratch" micro bytes 7
        %a0 = actor.load "x" forward micro -> (%rx)
        %a1 = actor.kernel @k "k" backward micro (%rx, %rw) -> (%y) scratch (%scratch)
        %a2 = actor.send "s" backward micro to 1 channel 3 elements 10 : i8 (%y)
        actor.order compute {
          actor.fire %a1 micro_batch 0 at [0, 0, 512, 576] after [#actor.wait<io 1>]
          actor.fire %a1 micro_batch 1 at [256, 0, 512, 576] after [#actor.wait<io 2>, #actor.wait<comm 2, steps_before = 1>]
        }
        actor.order comm {
          actor.fire %a2 micro_batch 0 at [512] after [#actor.wait<compute 1>]
          actor.fire %a2 micro_batch 1 at [512] after [#actor.wait<compute 2>]
        }
        actor.order io {
          actor.fire %a0 micro_batch 0 at [0] after [#actor.wait<compute 1, steps_before = 2>]
          actor.fire %a0 micro_batch 1 at [256]
        }
      }
      actor.class stage 1 from [0, 0] to [1, 2] arena_bytes 256 {
        %rl = actor.register "label" step bytes 12 of %label : !actor.tensor
        %rloss = actor.register "loss" step bytes 8 of %loss : !actor.tensor
        %y = actor.register "y" micro bytes 10
        %z = actor.register "z" micro bytes 10
        %a0 = actor.load "label" forward step -> (%rl)
        %a1 = actor.recv "r" backward micro from 0 channel 3 elements 10 : i8 -> (%y)
        %a2 = actor.collective all_reduce by prod "c" forward micro axes ["tp"] elements 10 : ui8 (%y) -> (%z)
      }
    }
  }
}
