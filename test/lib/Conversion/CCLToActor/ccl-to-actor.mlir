// RUN: flow-opt %s --split-input-file --flow-ccl-to-actor | FileCheck %s

// A data-parallel step on two ranks with unequal shards: two classes.
#m = #flow.mesh<"m", ["dp" = 2]>
ml_program.global private @w(#flow.weights<"w.safetensors", 0, 80> : tensor<5x4xf32>) : tensor<5x4xf32>
ml_program.global private @zero(dense<0.0> : tensor<5x4xf32>) : tensor<5x4xf32>
func.func private @forward(%c0: index, %x: tensor<3x5xf32>, %w: tensor<5x4xf32>) -> tensor<f32> attributes {flow.kernel}
func.func private @forward2(%c0: index, %x: tensor<2x5xf32>, %w: tensor<5x4xf32>) -> tensor<f32> attributes {flow.kernel}
func.func private @backward(%x: tensor<3x5xf32>, %w: tensor<5x4xf32>) -> tensor<5x4xf32> attributes {flow.kernel} {
  %e = tensor.empty() : tensor<5x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<5x4xf32>) outs(%e : tensor<5x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %a : f32
    %p = arith.mulf %s, %a : f32
    linalg.yield %p : f32
  } -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}
func.func private @backward2(%x: tensor<2x5xf32>, %w: tensor<5x4xf32>) -> tensor<5x4xf32> attributes {flow.kernel}
func.func private @update(%w: tensor<5x4xf32>, %v: tensor<5x4xf32>, %g: tensor<5x4xf32>, %lr: tensor<f32>)
    -> (tensor<5x4xf32> {flow.inplace = 0 : i64}, tensor<5x4xf32> {flow.inplace = 1 : i64}) attributes {flow.kernel}

// CHECK: actor.plan @m axes ["dp"] sizes [2] stages 1 {
// CHECK:   %[[W:.*]] = actor.state "w" stage 0 parameter initial @w : !flow.dist<5x4xf32, #{{.*}}, [B]>
// CHECK:   %[[V:.*]] = actor.state "w.momentum" stage 0 initial @zero : !flow.dist
// CHECK:   actor.program "step" micro_batches 1 {
// CHECK:     %[[X:.*]] = actor.tensor "x" input stage 0 : !flow.dist<5x5xf32, #{{.*}}, [S(0)]>
// CHECK:     %[[LR:.*]] = actor.tensor "lr" scalar stage 0
// CHECK:     %[[LOSS:.*]] = actor.tensor "loss" loss stage 0
// CHECK:     actor.class stage 0 from [0] to [1] {
// CHECK:       %[[RW:.*]] = actor.register "w" step bytes 80 of %[[W]] : !actor.state
// CHECK:       %[[RV:.*]] = actor.register "w.momentum" step bytes 80 of %[[V]] : !actor.state
// CHECK:       %[[RX:.*]] = actor.register "x" step bytes 60 of %[[X]] : !actor.tensor
// CHECK:       actor.load "x" forward step -> (%[[RX]])
// CHECK:       %[[RLR:.*]] = actor.register "lr" step bytes 4 of %[[LR]]
// CHECK:       actor.load "lr" forward step -> (%[[RLR]])
// CHECK:       %[[RLOSS:.*]] = actor.register "loss" step bytes 4 of %[[LOSS]]
// CHECK:       %[[RW2:.*]] = actor.register "w" step bytes 80 updated of %[[W]]
// CHECK:       %[[RV2:.*]] = actor.register "w.momentum" step bytes 80 updated of %[[V]]
// CHECK:       %[[PART:.*]] = actor.register "fc" step bytes 4
// CHECK:       actor.kernel @forward "fc" forward step (%[[RX]], %[[RW]]) -> (%[[PART]])
// CHECK:       actor.collective all_reduce by sum "fc" forward step axes ["dp"] elements 1 : f32 (%[[PART]]) -> (%[[RLOSS]])
// CHECK:       %[[G:.*]] = actor.register "fc" step bytes 80
// CHECK:       actor.kernel @backward "fc" backward step (%[[RX]], %[[RW]]) -> (%[[G]]) {bytes_moved = 220 : i64, flops = 40 : i64}
// CHECK:       %[[R:.*]] = actor.register "fc" step bytes 80
// CHECK:       actor.collective all_reduce by sum "fc" backward step axes ["dp"] elements 20 : f32 (%[[G]]) -> (%[[R]])
// CHECK:       actor.kernel @update "w" update step (%[[RW]], %[[RV]], %[[R]], %[[RLR]]) -> (%[[RW2]], %[[RV2]]) inplace [0, 1]
// CHECK:     actor.class stage 0 from [1] to [2] {
// CHECK:       actor.register "x" step bytes 40 of %[[X]]
// CHECK:       actor.kernel @forward2
// CHECK-NOT: func.func @step
func.func @step.s0.c0(%c0: index,
    %w: tensor<5x4xf32> {flow.name = "w", flow.kind = "state", flow.initial = @w, flow.dist = !flow.dist<5x4xf32, #m, [B]>},
    %v: tensor<5x4xf32> {flow.name = "w.momentum", flow.kind = "state", flow.initial = @zero, flow.slot_of = "w", flow.dist = !flow.dist<5x4xf32, #m, [B]>},
    %x: tensor<3x5xf32> {flow.name = "x", flow.kind = "input", flow.dist = !flow.dist<5x5xf32, #m, [S(0)]>},
    %lr: tensor<f32> {flow.name = "lr", flow.kind = "scalar", flow.dist = !flow.dist<f32, #m, [B]>})
    -> (tensor<5x4xf32> {flow.kind = "state", flow.tied = 1 : i64}, tensor<5x4xf32> {flow.kind = "state", flow.tied = 2 : i64},
        tensor<f32> {flow.kind = "loss", flow.dist = !flow.dist<f32, #m, [B]>})
    attributes {flow.class = {program = "step", stage = 0 : i64, lo = [0], hi = [1]}} {
  %e0 = tensor.empty() : tensor<f32>
  %part = call @forward(%c0, %x, %w) : (index, tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<f32> loc("fc")
  %loss = ccl.all_reduce sum %part into %e0 axes ["dp"] : tensor<f32> into tensor<f32> loc("fc")
  %g = call @backward(%x, %w) {flow.phase = #flow.phase<backward>} : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<5x4xf32> loc("fc")
  %e1 = tensor.empty() : tensor<5x4xf32>
  %r = ccl.all_reduce sum %g into %e1 axes ["dp"] {flow.phase = #flow.phase<backward>} : tensor<5x4xf32> into tensor<5x4xf32> loc("fc")
  %n:2 = call @update(%w, %v, %r, %lr) {flow.phase = #flow.phase<update>} : (tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<f32>) -> (tensor<5x4xf32>, tensor<5x4xf32>) loc("w")
  return %n#0, %n#1, %loss : tensor<5x4xf32>, tensor<5x4xf32>, tensor<f32>
}
func.func @step.s0.c1(%c0: index,
    %w: tensor<5x4xf32> {flow.name = "w", flow.kind = "state", flow.initial = @w, flow.dist = !flow.dist<5x4xf32, #m, [B]>},
    %v: tensor<5x4xf32> {flow.name = "w.momentum", flow.kind = "state", flow.initial = @zero, flow.slot_of = "w", flow.dist = !flow.dist<5x4xf32, #m, [B]>},
    %x: tensor<2x5xf32> {flow.name = "x", flow.kind = "input", flow.dist = !flow.dist<5x5xf32, #m, [S(0)]>},
    %lr: tensor<f32> {flow.name = "lr", flow.kind = "scalar", flow.dist = !flow.dist<f32, #m, [B]>})
    -> (tensor<5x4xf32> {flow.kind = "state", flow.tied = 1 : i64}, tensor<5x4xf32> {flow.kind = "state", flow.tied = 2 : i64},
        tensor<f32> {flow.kind = "loss", flow.dist = !flow.dist<f32, #m, [B]>})
    attributes {flow.class = {program = "step", stage = 0 : i64, lo = [1], hi = [2]}} {
  %e0 = tensor.empty() : tensor<f32>
  %part = call @forward2(%c0, %x, %w) : (index, tensor<2x5xf32>, tensor<5x4xf32>) -> tensor<f32> loc("fc")
  %loss = ccl.all_reduce sum %part into %e0 axes ["dp"] : tensor<f32> into tensor<f32> loc("fc")
  %g = call @backward2(%x, %w) {flow.phase = #flow.phase<backward>} : (tensor<2x5xf32>, tensor<5x4xf32>) -> tensor<5x4xf32> loc("fc")
  %e1 = tensor.empty() : tensor<5x4xf32>
  %r = ccl.all_reduce sum %g into %e1 axes ["dp"] {flow.phase = #flow.phase<backward>} : tensor<5x4xf32> into tensor<5x4xf32> loc("fc")
  %n:2 = call @update(%w, %v, %r, %lr) {flow.phase = #flow.phase<update>} : (tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<f32>) -> (tensor<5x4xf32>, tensor<5x4xf32>) loc("w")
  return %n#0, %n#1, %loss : tensor<5x4xf32>, tensor<5x4xf32>, tensor<f32>
}

// -----

// The loop over micro-batches: rate micro inside, loads per micro-batch, a
// carried accumulator, a copy of what the loop leaves.
#m = #flow.mesh<"m", ["rank" = 1]>
func.func private @zero() -> tensor<4xf32> attributes {flow.kernel}
func.func private @accumulate(%acc: tensor<4xf32>, %x: tensor<3x4xf32>) -> (tensor<4xf32> {flow.inplace = 0 : i64}) attributes {flow.kernel}

// CHECK: actor.program "step" micro_batches 2 {
// CHECK:   %[[X:.*]] = actor.tensor "x" input stage 0 : !flow.dist<3x4xf32, #{{.*}}, [S(0)]>
// CHECK:   %[[RX:.*]] = actor.register "x" micro bytes 48 of %[[X]]
// CHECK:   actor.load "x" forward micro -> (%[[RX]])
// CHECK:   %[[LOSS:.*]] = actor.register "loss" step bytes 16
// CHECK:   %[[Z:.*]] = actor.register "zero" step bytes 16
// CHECK:   actor.kernel @zero "zero" forward step () -> (%[[Z]])
// CHECK:   %[[BEFORE:.*]] = actor.carried %[[Z]], %[[ACC:.*]]
// CHECK:   %[[ACC]] = actor.register "accumulate" micro bytes 16
// CHECK:   actor.kernel @accumulate "accumulate" backward micro (%[[BEFORE]], %[[RX]]) -> (%[[ACC]]) inplace [0]
// CHECK:   actor.copy "loss" other step (%[[ACC]]) -> (%[[LOSS]])
func.func @step.s0.c0(%c0: index,
    %x: tensor<2x3x4xf32> {flow.name = "x", flow.kind = "input", flow.dist = !flow.dist<2x3x4xf32, #m, [S(1)]>})
    -> (tensor<4xf32> {flow.kind = "loss", flow.name = "loss"})
    attributes {flow.class = {program = "step", stage = 0 : i64, lo = [0], hi = [1]}} {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %i2 = arith.constant 2 : index
  %z = call @zero() : () -> tensor<4xf32>
  %r = scf.for %m = %i0 to %i2 step %i1 iter_args(%acc = %z) -> tensor<4xf32> {
    %s = tensor.extract_slice %x[%m, 0, 0] [1, 3, 4] [1, 1, 1] : tensor<2x3x4xf32> to tensor<3x4xf32>
    %n = func.call @accumulate(%acc, %s) {flow.phase = #flow.phase<backward>} : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// What cannot be in place becomes a copy: a state whose old value is read after
// the update, two states that swap, an argument that is a result, one value
// returned twice.
#m = #flow.mesh<"m", ["rank" = 1]>
func.func private @update(%w: tensor<4xf32>, %x: tensor<4xf32>) -> (tensor<4xf32> {flow.inplace = 0 : i64}) attributes {flow.kernel}
func.func private @add(%w: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> attributes {flow.kernel}

// CHECK: %[[W:.*]] = actor.register "w" step bytes 16 of
// CHECK: %[[A:.*]] = actor.register "a" step bytes 16 of
// CHECK: %[[B:.*]] = actor.register "b" step bytes 16 of
// CHECK: %[[X:.*]] = actor.register "x" step bytes 16 of
// CHECK: %[[OUT0:.*]] = actor.register "out0" step
// CHECK: %[[OUT1:.*]] = actor.register "out1" step
// CHECK: %[[OUT2:.*]] = actor.register "out2" step
// CHECK: %[[W2:.*]] = actor.register "w" step bytes 16 updated of
// CHECK: %[[A2:.*]] = actor.register "a" step bytes 16 updated of
// CHECK: %[[B2:.*]] = actor.register "b" step bytes 16 updated of
// CHECK: %[[NEW:.*]] = actor.register "update" step bytes 16
// CHECK: actor.kernel @update {{.*}} (%[[W]], %[[X]]) -> (%[[NEW]])
// CHECK: actor.kernel @add {{.*}} (%[[W]], %[[NEW]]) -> (%[[OUT0]])
// CHECK: actor.copy "out1" other step (%[[OUT0]]) -> (%[[OUT1]])
// CHECK: actor.copy "out2" other step (%[[X]]) -> (%[[OUT2]])
// CHECK: actor.copy "w" update step (%[[NEW]]) -> (%[[W2]])
// CHECK: actor.copy "a" update step (%[[B]]) -> (%[[TMP:.*]])
// CHECK: actor.copy "a" update step (%[[TMP]]) -> (%[[A2]])
// CHECK: actor.copy "b" update step (%[[A]]) -> (%[[TMP:.*]])
// CHECK: actor.copy "b" update step (%[[TMP]]) -> (%[[B2]])
func.func @main.s0.c0(
    %w: tensor<4xf32> {flow.name = "w", flow.kind = "state"}, %a: tensor<4xf32> {flow.name = "a", flow.kind = "state"},
    %b: tensor<4xf32> {flow.name = "b", flow.kind = "state"}, %x: tensor<4xf32> {flow.name = "x", flow.kind = "input"})
    -> (tensor<4xf32> {flow.kind = "state", flow.tied = 0 : i64}, tensor<4xf32> {flow.kind = "state", flow.tied = 1 : i64},
        tensor<4xf32> {flow.kind = "state", flow.tied = 2 : i64},
        tensor<4xf32> {flow.name = "out0"}, tensor<4xf32> {flow.name = "out1"}, tensor<4xf32> {flow.name = "out2"})
    attributes {flow.class = {program = "main", stage = 0 : i64, lo = [0], hi = [1], mesh = #m}} {
  %n = call @update(%w, %x) {flow.phase = #flow.phase<update>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = call @add(%w, %n) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %n, %b, %a, %s, %s, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Every collective, and two stages.
#m = #flow.mesh<"m", ["dp" = 1, "tp" = 2]>
// CHECK: actor.plan @m axes ["dp", "tp"] sizes [1, 2] stages 2
// CHECK: actor.class stage 0 from [0, 0] to [1, 2]
// CHECK: actor.collective all_gather "x" forward step axes ["tp"] elements 6 : f32
// CHECK: actor.collective reduce_scatter by max "x" forward step axes ["tp"] elements 6 : f32
// CHECK: actor.collective all_to_all "x" forward step axes ["tp"] elements 6 : f32
// CHECK: actor.send "x" forward step to 1 channel 3 elements 12 : f32
// CHECK: actor.class stage 1
// CHECK: %[[OUT:.*]] = actor.register "y" step bytes 48
// CHECK: actor.recv "recv" forward step from 0 channel 3 elements 12 : f32 -> (%[[OUT]])
func.func @main.s0.c0(%c0: index, %c1: index, %x: tensor<6xf32> {flow.name = "x", flow.kind = "input"})
    attributes {flow.class = {program = "main", stage = 0 : i64, lo = [0, 0], hi = [1, 2], mesh = #m}} {
  %e = tensor.empty() : tensor<2x6xf32>
  %g = ccl.all_gather %x into %e axes ["tp"] : tensor<6xf32> into tensor<2x6xf32>
  %e1 = tensor.empty() : tensor<6xf32>
  %s = ccl.reduce_scatter max %g into %e1 axes ["tp"] : tensor<2x6xf32> into tensor<6xf32>
  %a = ccl.all_to_all %g into %e axes ["tp"] : tensor<2x6xf32> into tensor<2x6xf32>
  ccl.send %a to stage 1 channel 3 : tensor<2x6xf32>
  return
}
func.func @main.s1.c0(%c0: index, %c1: index) -> (tensor<12xf32> {flow.name = "y", flow.kind = "output"})
    attributes {flow.class = {program = "main", stage = 1 : i64, lo = [0, 0], hi = [1, 2], mesh = #m}} {
  %e = tensor.empty() : tensor<2x6xf32>
  %r = ccl.recv %e from stage 0 channel 3 : tensor<2x6xf32>
  %flat = tensor.collapse_shape %r [[0, 1]] : tensor<2x6xf32> into tensor<12xf32>
  return %flat : tensor<12xf32>
}
