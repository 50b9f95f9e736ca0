// RUN: flow-opt %s --flow-localize --flow-verify-localization --canonicalize --split-input-file | FileCheck %s

#m = #flow.mesh<"m", ["dp" = 64, "tp" = 64]>
!x = !flow.dist<128x256xf32, #m, [S(0), S(1)]>
!w = !flow.dist<256x64xf32, #m, [B, S(0)]>
!p = !flow.dist<128x64xf32, #m, [S(0), P(sum)]>
!y = !flow.dist<128x64xf32, #m, [S(0), B]>

// One class for 4096 ranks where everything divides.
// CHECK: module attributes {flow.programs = {even = {mesh = #[[M:.*]], placed = @even.placed, stages = {{\[\[}}@even.s0.c0]]}}}
// CHECK: func.func @even.s0.c0(%{{.*}}: index, %{{.*}}: index, %[[X:.*]]: tensor<2x4xf32> {flow.dist = !flow.dist<128x256xf32, #[[M]], [S(0), S(1)]>, flow.index = 0 : i64, flow.name = "x"},
// CHECK-SAME: %[[W:.*]]: tensor<4x64xf32>
// CHECK-SAME: -> (tensor<2x64xf32> {flow.dist = !flow.dist<128x64xf32, #[[M]], [S(0), B]>, flow.index = 0 : i64, flow.kind = "output"})
// CHECK-SAME: attributes {flow.class = {hi = [64, 64], lo = [0, 0], program = "even", stage = 0 : i64}, flow.mesh = #[[M]]}
// CHECK: linalg.matmul {flow.phase = #flow.phase<forward>} ins(%[[X]], %[[W]]
// CHECK: ccl.all_reduce {{ *}}sum %{{.*}} into %{{.*}} axes ["tp"] {flow.phase = #flow.phase<forward>} : tensor<2x64xf32>
// CHECK-NOT: func.func @even.s0.c1
// CHECK: func.func private @even.placed
// CHECK-SAME: attributes {flow.placed}
func.func @even(%x: !x {flow.name = "x"}, %w: !w) -> (!y {flow.kind = "output"}) {
  %p = flow.compute (%x : !x, %w : !w) -> !p phase <forward> {
  ^bb0(%a: tensor<128x256xf32>, %b: tensor<256x64xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<128x64xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x64xf32>) -> tensor<128x64xf32>
    %c = linalg.matmul ins(%a, %b : tensor<128x256xf32>, tensor<256x64xf32>) outs(%f : tensor<128x64xf32>) -> tensor<128x64xf32>
    flow.yield %c : tensor<128x64xf32>
  }
  %y = flow.boxing %p phase <forward> : !p -> !y
  return %y : !y
}

// -----

#m = #flow.mesh<"m", ["tp" = 3]>
!s = !flow.dist<4x2xf32, #m, [S(0)]>
!b = !flow.dist<4x2xf32, #m, [B]>

// Classes of 2 rows and of 1 row: the block is 2 rows in both, the pieces are the peers'.
// CHECK-LABEL: func.func @uneven_gather.s0.c0
// CHECK-SAME: lo = [0]
// CHECK: %[[ALL:.*]] = ccl.all_gather %{{.*}} axes ["tp"] {dim = 0 : i64, global = 4 : i64} : tensor<2x2xf32> into tensor<3x2x2xf32>
// CHECK: %[[FIRST:.*]] = tensor.extract_slice %[[ALL]][0, 0, 0] [1, 2, 2]
// CHECK: %[[REST:.*]] = tensor.extract_slice %[[ALL]][1, 0, 0] [2, 1, 2]
// CHECK: tensor.concat dim(0)
// CHECK-LABEL: func.func @uneven_gather.s0.c1
// CHECK-SAME: hi = [3], lo = [1]
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 0] [1, 2] [1, 1] : tensor<1x2xf32> into tensor<2x2xf32>
// CHECK: ccl.all_gather %{{.*}} axes ["tp"] {dim = 0 : i64, global = 4 : i64} : tensor<2x2xf32> into tensor<3x2x2xf32>
func.func @uneven_gather(%x: !s) -> !b {
  %y = flow.boxing %x : !s -> !b
  return %y : !b
}

// -----

#m = #flow.mesh<"m", ["tp" = 3]>
!p = !flow.dist<4xf32, #m, [P(max)]>
!s = !flow.dist<4xf32, #m, [S(0)]>

// Padding of a reduction is neutral.
// CHECK-LABEL: func.func @scatter_pads_with_neutral.s0.c0
// CHECK: %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK: linalg.fill ins(%[[LOW]] : f32)
// CHECK: ccl.reduce_scatter {{ *}}max %{{.*}} into %{{.*}} axes ["tp"] {dim = 0 : i64, global = 4 : i64} : tensor<3x2xf32> into tensor<2xf32>
func.func @scatter_pads_with_neutral(%x: !p) -> !s {
  %y = flow.boxing %x : !p -> !s
  return %y : !s
}

// -----

#m = #flow.mesh<"m", ["tp" = 4]>
!b = !flow.dist<8x6xf32, #m, [B]>
!s = !flow.dist<8x6xf32, #m, [S(0)]>
!t = !flow.dist<8x6xf32, #m, [S(1)]>

// Coordinates occur in offsets only; one class, whatever the rank.
// CHECK: #[[TWICE:.*]] = affine_map<()[s0] -> (s0 * 2)>
// CHECK-LABEL: func.func @slice_by_coordinate.s0.c0
// CHECK-SAME: (%[[C:.*]]: index, %[[X:.*]]: tensor<8x6xf32>
// CHECK: %[[AT:.*]] = affine.apply #[[TWICE]]()[%[[C]]]
// CHECK: tensor.extract_slice %[[X]][%[[AT]], 0] [2, 6] [1, 1]
func.func @slice_by_coordinate(%x: !b) -> !s {
  %y = flow.boxing %x : !b -> !s
  return %y : !s
}

// 6 columns on 4 ranks are 2, 2, 1, 1: two runs, each moved as one piece.
// CHECK-LABEL: func.func @all_to_all_moves_runs.s0.c0
// CHECK-COUNT-1: linalg.transpose {{.*}} permutation = [1, 0, 2]
// CHECK: ccl.all_to_all %{{.*}} axes ["tp"] {dim = 1 : i64, global = 6 : i64} : tensor<4x2x2xf32> into tensor<4x2x2xf32>
// CHECK-LABEL: func.func @all_to_all_moves_runs.s0.c1
func.func @all_to_all_moves_runs(%x: !s) -> !t {
  %y = flow.boxing %x : !s -> !t
  return %y : !t
}

// -----

#m = #flow.mesh<"m", ["tp" = 2]>
!b = !flow.dist<4xf32, #m, [B]>
!s = !flow.dist<4xf32, #m, [S(0)]>
!p = !flow.dist<4xf32, #m, [P(sum)]>

// CHECK-LABEL: func.func @first_rank_keeps.s0.c0
// CHECK-SAME: (%[[C:.*]]: index
// CHECK-NOT: ccl.
// CHECK: linalg.generic
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[C]], %c0
// CHECK: arith.select %[[FIRST]], %in, %cst
func.func @first_rank_keeps(%x: !b) -> !p {
  %y = flow.boxing %x : !b -> !p
  return %y : !p
}

// CHECK-LABEL: func.func @shard_among_neutral.s0.c0
// CHECK-NOT: ccl.
// CHECK: linalg.fill
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[%{{.*}}] [2] [1] : tensor<2xf32> into tensor<4xf32>
func.func @shard_among_neutral(%x: !s) -> !p {
  %y = flow.boxing %x : !s -> !p
  return %y : !p
}

// -----

#m = #flow.mesh<"m", ["tp" = 2]>
!s = !flow.dist<6xf32, #m, [S(0)]>

// CHECK: #[[SHIFT:.*]] = affine_map<()[s0, s1] -> (s0 * 3 + s1)>
// CHECK-LABEL: func.func @index_is_shifted.s0.c0
// CHECK-SAME: (%[[C:.*]]: index)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<3xf32>)
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: affine.apply #[[SHIFT]]()[%[[C]], %[[I]]]
func.func @index_is_shifted() -> !s {
  %r = flow.compute () -> !s {
    %e = tensor.empty() : tensor<6xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<6xf32>) {
    ^bb0(%o: f32):
      %i = linalg.index 0 : index
      %n = arith.index_cast %i : index to i32
      %f = arith.sitofp %n : i32 to f32
      linalg.yield %f : f32
    } -> tensor<6xf32>
    flow.yield %0 : tensor<6xf32>
  }
  return %r : !s
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
#m1 = #flow.mesh<"m", ["dp" = 2], stage = 1>
!a0 = !flow.dist<4x3xf32, #m, [S(0)]>
!a1 = !flow.dist<4x3xf32, #m1, [S(0)]>
!s0 = !flow.dist<4x3xf32, #m, [S(0)]>
!r1 = !flow.dist<3xf32, #m1, [B]>
!g1 = !flow.dist<3xf32, #m1, [P(sum)]>

// Each stage has what it holds; the loop stands in both, around a channel.
// CHECK: stages = {{\[\[}}@two_stages.s0.c0], [@two_stages.s1.c0]]
// CHECK-LABEL: func.func @two_stages.s0.c0
// CHECK-SAME: (%{{.*}}: index, %[[X:.*]]: tensor<2x3xf32> {{{.*}}flow.name = "x"}) attributes
// CHECK: scf.for
// CHECK: %[[H:.*]] = linalg.add
// CHECK: ccl.send %[[H]] to stage 1 channel 0 {flow.phase = #flow.phase<forward>} : tensor<2x3xf32>
// CHECK-LABEL: func.func @two_stages.s1.c0
// CHECK-SAME: (%{{.*}}: index, %[[S:.*]]: tensor<3xf32> {{{.*}}flow.kind = "state"})
// CHECK-SAME: -> (tensor<3xf32> {{{.*}}flow.tied = 1 : i64})
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[S]]) -> (tensor<3xf32>)
// CHECK: ccl.recv %{{.*}} from stage 0 channel 0
// CHECK: ccl.all_reduce {{ *}}sum
func.func @two_stages(%x: !a0 {flow.name = "x"}, %s: !r1 {flow.kind = "state"}) -> (!r1 {flow.tied = 1 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %s) -> (!r1) {
    %h = flow.compute (%x : !a0) -> !a0 phase <forward> {
    ^bb0(%a: tensor<4x3xf32>):
      %e = tensor.empty() : tensor<4x3xf32>
      %0 = linalg.add ins(%a, %a : tensor<4x3xf32>, tensor<4x3xf32>) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
      flow.yield %0 : tensor<4x3xf32>
    }
    %h1 = flow.boxing %h phase <forward> : !a0 -> !a1
    %g = flow.compute (%h1 : !a1) -> !g1 {
    ^bb0(%a: tensor<4x3xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<3xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
      %0 = linalg.reduce ins(%a : tensor<4x3xf32>) outs(%f : tensor<3xf32>) dimensions = [0] (%in: f32, %old: f32) {
        %q = arith.addf %in, %old : f32
        linalg.yield %q : f32
      }
      flow.yield %0 : tensor<3xf32>
    }
    %gb = flow.boxing %g : !g1 -> !r1
    %n = flow.compute (%acc : !r1, %gb : !r1) -> !r1 {
    ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):
      %e = tensor.empty() : tensor<3xf32>
      %0 = linalg.add ins(%a, %b : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
      flow.yield %0 : tensor<3xf32>
    }
    scf.yield %n : !r1
  }
  return %r : !r1
}
