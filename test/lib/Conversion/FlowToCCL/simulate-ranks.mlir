// RUN: flow-opt %s --flow-localize --flow-simulate-ranks --canonicalize --split-input-file | FileCheck %s

#m = #flow.mesh<"m", ["dp" = 2]>
!p = !flow.dist<3xf32, #m, [P(sum)]>
!b = !flow.dist<3xf32, #m, [B]>

// CHECK-NOT: flow.programs
// CHECK-LABEL: func.func @all_reduce_adds_in_rank_order
// CHECK-SAME: (%[[X:.*]]: tensor<3xf32> {flow.name = "x"}) -> tensor<3xf32>
// CHECK: %[[X0:.*]] = linalg.generic
// CHECK: %[[X1:.*]] = linalg.generic
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[X0]], %[[X1]] :
// CHECK: return %[[R]]
// CHECK-NOT: func.func
func.func @all_reduce_adds_in_rank_order(%x: !p {flow.name = "x"}) -> !b {
  %y = flow.boxing %x : !p -> !b
  return %y : !b
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
#m1 = #flow.mesh<"m", ["dp" = 2], stage = 1>
!a = !flow.dist<4xf32, #m, [S(0)]>
!b = !flow.dist<4xf32, #m1, [S(0)]>

// The loops of both stages are one loop that carries all ranks' values.
// CHECK-LABEL: func.func @stages_share_the_loop
// CHECK-SAME: (%{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4xf32>, %[[N:.*]]: index)
// CHECK: scf.for {{.*}} to %[[N]] {{.*}} -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
// CHECK-NOT: scf.for
func.func @stages_share_the_loop(%x: !a, %z: !b, %n: index) -> (!a, !b) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x, %w = %z) -> (!a, !b) {
    %d = flow.compute (%v : !a) -> !a {
    ^bb0(%t: tensor<4xf32>):
      %e = tensor.empty() : tensor<4xf32>
      %0 = linalg.exp ins(%t : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      flow.yield %0 : tensor<4xf32>
    }
    %s = flow.boxing %d : !a -> !b
    scf.yield %d, %s : !a, !b
  }
  return %r#0, %r#1 : !a, !b
}
