// RUN: flow-opt %s --flow-lockstep --canonicalize --split-input-file | FileCheck %s

#m = #flow.mesh<"m", ["dp" = 2]>

// The parts of a P argument add up to it and none is the value itself.
// CHECK-LABEL: func.func @partial_argument_is_decomposed
// CHECK-SAME: (%[[X:.*]]: tensor<3xf32>) -> tensor<3xf32>
// CHECK-DAG: %[[B:.*]] = arith.constant -1.500000e+00 : f32
// CHECK-DAG: %[[A:.*]] = arith.constant 2.500000e+00 : f32
// CHECK: %[[X0:.*]] = linalg.generic {{.*}} ins(%[[X]] :
// CHECK: arith.mulf %{{.*}}, %[[A]]
// CHECK: %[[X1:.*]] = linalg.generic {{.*}} ins(%[[X]] :
// CHECK: arith.mulf %{{.*}}, %[[B]]
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[X0]], %[[X1]] :
// CHECK: arith.addf
// CHECK: return %[[R]]
func.func @partial_argument_is_decomposed(%x: !flow.dist<3xf32, #m, [P(sum)]>) -> !flow.dist<3xf32, #m, [B]> {
  %r = flow.boxing %x : !flow.dist<3xf32, #m, [P(sum)]> -> !flow.dist<3xf32, #m, [B]>
  return %r : !flow.dist<3xf32, #m, [B]>
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
!s = !flow.dist<5x2xf32, #m, [S(0)]>

// linalg.index counts in the whole tensor.
// CHECK-LABEL: func.func @index_is_shifted
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<3x2xf32>)
// CHECK: linalg.index 0
// CHECK-NOT: arith.addi
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x2xf32>)
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: affine.apply {{.*}}{{\[}}%[[I]]{{\]}}
func.func @index_is_shifted() -> !s {
  %r = flow.compute () -> !s {
    %e = tensor.empty() : tensor<5x2xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<5x2xf32>) {
    ^bb0(%o: f32):
      %i = linalg.index 0 : index
      %n = arith.index_cast %i : index to i32
      %f = arith.sitofp %n : i32 to f32
      linalg.yield %f : f32
    } -> tensor<5x2xf32>
    flow.yield %0 : tensor<5x2xf32>
  }
  return %r : !s
}

// -----

#m = #flow.mesh<"m", ["dp" = 3]>
!s = !flow.dist<2xf32, #m, [S(0)]>
!b = !flow.dist<2xf32, #m, [B]>

// A loop carries one value per rank; the third rank's is empty.
// CHECK-LABEL: func.func @loop_carries_all_ranks
// CHECK: scf.for {{.*}} -> (tensor<1xf32>, tensor<1xf32>
func.func @loop_carries_all_ranks(%x: !s, %n: index) -> !b {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> (!s) {
    %d = flow.compute (%v : !s) -> !s {
    ^bb0(%a: tensor<2xf32>):
      %e = tensor.empty() : tensor<2xf32>
      %0 = linalg.add ins(%a, %a : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
      flow.yield %0 : tensor<2xf32>
    }
    scf.yield %d : !s
  }
  // CHECK: tensor.concat dim(0)
  %b = flow.boxing %r : !s -> !b
  return %b : !b
}

// -----

// Functions without distributed values stay.
// CHECK-LABEL: func.func @plain
// CHECK-SAME: (%{{.*}}: tensor<2xf32>)
func.func @plain(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
