// RUN: flow-opt %s --flow-loop-micro-batches="micro-batches=2" | FileCheck %s
// RUN: flow-opt %s --flow-loop-micro-batches | FileCheck %s --check-prefix=ONE
// RUN: not flow-opt %s --flow-loop-micro-batches="micro-batches=0" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expected at least one micro-batch, got 0
// ONE-NOT: scf.for

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[A:[^:]*]]: tensor<5x4xf32> {flow.kind = "state"
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3x5xf32> {flow.kind = "input"
// CHECK-SAME: %[[T:[^:]*]]: tensor<2x3x4xf32> {flow.kind = "label"
// CHECK-SAME: -> (tensor<f32> {flow.kind = "loss"}, tensor<5x4xf32> {flow.kind = "gradient"}, tensor<4xf32> {flow.kind = "gradient"})
// CHECK: %[[R:.*]]:3 = scf.for %[[M:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[L:.*]] = %{{.*}}, %[[GA:.*]] = %{{.*}}, %[[GB:.*]] = %{{.*}}) -> (tensor<f32>, tensor<5x4xf32>, tensor<4xf32>)
// CHECK: %[[XM:.*]] = tensor.extract_slice %[[X]][%[[M]], 0, 0] [1, 3, 5] [1, 1, 1] : tensor<2x3x5xf32> to tensor<3x5xf32>
// CHECK: %[[TM:.*]] = tensor.extract_slice %[[T]][%[[M]], 0, 0]
// a chain of accumulations onto zeros starts from the sum so far
// CHECK: %[[G1:.*]] = linalg.contract {{.*}} ins(%[[XM]], %[[TM]] {{.*}} outs(%[[GA]] : tensor<5x4xf32>)
// CHECK: %[[G2:.*]] = linalg.contract {{.*}} outs(%[[G1]] : tensor<5x4xf32>)
// anything else is added, in f32
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[GB]], %{{.*}} : tensor<4xf32>, tensor<4xbf16>)
// CHECK: arith.extf
// CHECK: scf.yield %{{.*}}, %[[G2]], %[[SUM]]
// CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2
#ki = affine_map<(i, j, k) -> (k, i)>
#kj = affine_map<(i, j, k) -> (k, j)>
#ij = affine_map<(i, j, k) -> (i, j)>
func.func @step(%a: tensor<5x4xf32> {flow.kind = "state"}, %x: tensor<3x5xf32> {flow.kind = "input"},
                %t: tensor<3x4xf32> {flow.kind = "label"}, %b: tensor<4xbf16> {flow.kind = "state"})
    -> (tensor<f32> {flow.kind = "loss"}, tensor<5x4xf32> {flow.kind = "gradient"}, tensor<4xbf16> {flow.kind = "gradient"}) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<f32>
  %loss = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %e = tensor.empty() : tensor<5x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4xf32>) -> tensor<5x4xf32>
  %g = linalg.contract indexing_maps = [#ki, #kj, #ij] ins(%x, %t : tensor<3x5xf32>, tensor<3x4xf32>) outs(%f : tensor<5x4xf32>) -> tensor<5x4xf32>
  %h = linalg.contract indexing_maps = [#ki, #kj, #ij] ins(%x, %t : tensor<3x5xf32>, tensor<3x4xf32>) outs(%g : tensor<5x4xf32>) -> tensor<5x4xf32>
  return %loss, %h, %b : tensor<f32>, tensor<5x4xf32>, tensor<4xbf16>
}
