// RUN: flow-opt %s --split-input-file --flow-differentiate="function=f" | FileCheck %s

// Both adjoints of a contraction are contractions with permuted maps; nothing of the forward result is kept.
// CHECK-DAG: #[[IK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[KJ:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[IJ:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[A:[^:]*]]: tensor<3x5xf32>
// CHECK-SAME: %[[B:[^:]*]]: tensor<5x4xf32>
// CHECK-SAME: tensor<3x5xf32> {flow.kind = "gradient", flow.name = "grad_a"}, tensor<5x4xf32> {flow.kind = "gradient", flow.name = "grad_b"})
// CHECK: linalg.matmul
// CHECK: linalg.contract indexing_maps = [#[[KJ]], #[[IJ]], #[[IK]]] {flow.phase = #flow.phase<backward>} ins(%[[B]], %[[G:.*]] : tensor<5x4xf32>, tensor<3x4xf32>)
// CHECK: linalg.contract indexing_maps = [#[[IK]], #[[IJ]], #[[KJ]]] {flow.phase = #flow.phase<backward>} ins(%[[A]], %[[G]] : tensor<3x5xf32>, tensor<3x4xf32>)
#id = affine_map<(i, j) -> (i, j)>
func.func @f(%a: tensor<3x5xf32> {flow.kind = "state", flow.name = "a"},
             %b: tensor<5x4xf32> {flow.kind = "state", flow.name = "b"},
             %z: tensor<3x4xf32>, %t: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<3x5xf32>, tensor<5x4xf32>) outs(%z : tensor<3x4xf32>) -> tensor<3x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.mul ins(%y, %t : tensor<3x4xf32>, tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// The second use of a parameter adds to the gradient of the first in place.
// CHECK-LABEL: func.func @f(
// CHECK: %[[FIRST:.*]] = linalg.contract {{.*}} -> tensor<4x4xf32>
// CHECK: linalg.contract {{.*}} outs(%[[FIRST]] : tensor<4x4xf32>)
func.func @f(%x: tensor<3x4xf32> {flow.name = "x"}, %w: tensor<4x4xf32> {flow.kind = "state", flow.name = "w"},
             %z: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<3x4xf32>, tensor<4x4xf32>) outs(%z : tensor<3x4xf32>) -> tensor<3x4xf32>
  %u = linalg.matmul ins(%y, %w : tensor<3x4xf32>, tensor<4x4xf32>) outs(%z : tensor<3x4xf32>) -> tensor<3x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.mul ins(%u, %x : tensor<3x4xf32>, tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// The gradient of a convolution's image keeps the window as its output map.
// CHECK: #[[WINDOW:.*]] = affine_map<{{.*}} -> (d0, d1 * 2 + d3, d4)>
// CHECK-LABEL: func.func @f(
// CHECK: linalg.conv_1d_nwc_wcf
// CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[WINDOW]]], iterator_types = ["parallel", "reduction", "reduction", "reduction", "parallel"]}
// CHECK-SAME: outs(%{{.*}} : tensor<2x7x3xf32>) attrs = {flow.phase = #flow.phase<backward>}
func.func @f(%x: tensor<2x7x3xf32> {flow.kind = "state", flow.name = "x"}, %w: tensor<3x3x4xf32>, %z: tensor<2x3x4xf32>, %t: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %y = linalg.conv_1d_nwc_wcf {strides = dense<2> : tensor<1xi64>} ins(%x, %w : tensor<2x7x3xf32>, tensor<3x3x4xf32>) outs(%z : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %e = tensor.empty() : tensor<2x3x4xf32>
  %r = linalg.mul ins(%y, %t : tensor<2x3x4xf32>, tensor<2x3x4xf32>) outs(%e : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %r : tensor<2x3x4xf32>
}

// -----

// ReLU is masked by its input; a seed of ones is a number, no operand.
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32>
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<4xf32>) {{.*}}flow.phase = #flow.phase<backward>
// CHECK: %[[C:.*]] = arith.cmpf ogt
// CHECK: arith.select %[[C]], %cst{{.*}}, %cst{{.*}} : f32
#v = affine_map<(i) -> (i)>
func.func @f(%x: tensor<4xf32> {flow.kind = "state", flow.name = "x"}) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.cmpf ogt, %a, %zero : f32
    %s = arith.select %c, %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// What is stopped, frozen or an integer is not differentiated; the stopped op gets no backward part.
// CHECK-LABEL: func.func @f(
// CHECK-SAME: -> (tensor<f32> {flow.kind = "loss", flow.name = "loss"}, tensor<4xf32> {flow.kind = "gradient", flow.name = "grad_w"})
// CHECK: linalg.exp
// CHECK-NOT: math.exp
// CHECK: return
func.func @f(%w: tensor<4xf32> {flow.kind = "state", flow.name = "w"},
             %m: tensor<4xf32> {flow.frozen, flow.kind = "state", flow.name = "m"},
             %n: tensor<4xi64> {flow.kind = "state", flow.name = "n"},
             %u: tensor<4xf32> {flow.kind = "state", flow.name = "unused"},
             %z: tensor<f32>) -> (tensor<f32> {flow.kind = "loss", flow.name = "loss"}) {
  %e = tensor.empty() : tensor<4xf32>
  %s = linalg.exp {flow.stop_gradient} ins(%w : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %a = linalg.mul ins(%w, %s : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %b = linalg.mul ins(%a, %m : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = linalg.reduce {arith.addf} ins(%b : tensor<4xf32>) outs(%z : tensor<f32>) dimensions = [0]
  return %r : tensor<f32>
}

// -----

// Sums of narrow values are accumulated in f32; a contraction widens by itself.
// CHECK-LABEL: func.func @f(
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %{{.*}} : tensor<3x5xbf16>, tensor<3x4xbf16>) outs(%{{.*}} : tensor<5x4xf32>) -> tensor<5x4xf32>
// CHECK: arith.truncf %{{.*}} : f32 to bf16
func.func @f(%a: tensor<3x5xbf16>, %b: tensor<5x4xbf16> {flow.kind = "state", flow.name = "b"},
             %z: tensor<3x4xbf16>, %t: tensor<3x4xbf16>) -> tensor<3x4xbf16> {
  %y = linalg.matmul ins(%a, %b : tensor<3x5xbf16>, tensor<5x4xbf16>) outs(%z : tensor<3x4xbf16>) -> tensor<3x4xbf16>
  %e = tensor.empty() : tensor<3x4xbf16>
  %r = linalg.mul ins(%y, %t : tensor<3x4xbf16>, tensor<3x4xbf16>) outs(%e : tensor<3x4xbf16>) -> tensor<3x4xbf16>
  return %r : tensor<3x4xbf16>
}

// -----

// A loop: its carried value is kept per iteration, the backward loop counts down.
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32>
// CHECK: %[[FWD:.*]]:2 = scf.for %{{.*}} iter_args(%[[H:.*]] = %[[X]], %[[STACK:.*]] = %{{.*}}) -> (tensor<4xf32>, tensor<?x4xf32>) {
// CHECK: tensor.insert_slice %[[H]] into %[[STACK]]
// CHECK: scf.for {{.*}} -> (tensor<4xf32>) {
// CHECK: tensor.extract_slice %[[FWD]]#1
// CHECK: linalg.tanh
// CHECK: } {flow.phase = #flow.phase<backward>}
func.func @f(%x: tensor<4xf32> {flow.kind = "state", flow.name = "x"}, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> (tensor<4xf32>) {
    %t = linalg.tanh ins(%h : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
