// RUN: flow-opt %s --flow-distribute --flow-verify-distribution --split-input-file | FileCheck %s
#m = #flow.mesh<"m", ["dp" = 2, "tp" = 3]>
#n = #flow.mesh<"m", ["tp" = 3]>
#id = affine_map<(i, j) -> (i, j)>

// The inits move into the region, once per user; constraints become types.
// CHECK-LABEL: func.func @matmul_split_k_becomes_partial(
// CHECK-SAME: [B, S(1)]>, %{{.*}} [B, S(0)]>) -> !flow.dist<7x5xf32, #mesh, [B, B]>
// CHECK: %[[P:.*]] = flow.compute ({{.*}}) -> !flow.dist<7x5xf32, #mesh, [B, P(sum)]> {
// CHECK: linalg.fill
// CHECK: linalg.matmul
// CHECK: flow.boxing %[[P]] : {{.*}} [B, P(sum)]> -> {{.*}} [B, B]>
func.func @matmul_split_k_becomes_partial(%x: tensor<7x11xf32>, %w: tensor<11x5xf32>) -> tensor<7x5xf32> {
  %z = arith.constant 0.0 : f32
  %xc = flow.constrain %x to #m [#flow.sbp<B>, #flow.sbp<S(1)>] : tensor<7x11xf32>
  %wc = flow.constrain %w to #m [#flow.sbp<B>, #flow.sbp<S(0)>] : tensor<11x5xf32>
  %e = tensor.empty() : tensor<7x5xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<7x5xf32>) -> tensor<7x5xf32>
  %y = linalg.matmul ins(%xc, %wc : tensor<7x11xf32>, tensor<11x5xf32>) outs(%f : tensor<7x5xf32>) -> tensor<7x5xf32>
  return %y : tensor<7x5xf32>
}

// -----
#n = #flow.mesh<"m", ["tp" = 3]>
#id = affine_map<(i, j) -> (i, j)>
#k = affine_map<(i, j, k) -> (i, k)>
#l = affine_map<(i, j, k) -> (k, j)>
#o = affine_map<(i, j, k) -> (i, j)>
// a@b + c@d along K: one reduction, behind the sum.
// CHECK-LABEL: func.func @sum_of_partials(
// CHECK-NOT: flow.boxing {{.*}} [P(sum)]> ->
// CHECK: linalg.add
// CHECK: flow.boxing {{.*}} [P(sum)]> -> {{.*}} [B]>
// CHECK-NOT: flow.boxing
// CHECK: return
func.func @sum_of_partials(%a: tensor<7x11xf32>, %b: tensor<11x5xf32>, %c: tensor<7x11xf32>, %d: tensor<11x5xf32>) -> tensor<7x5xf32> {
  %z = arith.constant 0.0 : f32
  %ac = flow.constrain %a to #n [#flow.sbp<S(1)>] : tensor<7x11xf32>
  %cc = flow.constrain %c to #n [#flow.sbp<S(1)>] : tensor<7x11xf32>
  %e = tensor.empty() : tensor<7x5xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<7x5xf32>) -> tensor<7x5xf32>
  %x = linalg.matmul ins(%ac, %b : tensor<7x11xf32>, tensor<11x5xf32>) outs(%f : tensor<7x5xf32>) -> tensor<7x5xf32>
  %y = linalg.matmul ins(%cc, %d : tensor<7x11xf32>, tensor<11x5xf32>) outs(%f : tensor<7x5xf32>) -> tensor<7x5xf32>
  %s = linalg.add ins(%x, %y : tensor<7x5xf32>, tensor<7x5xf32>) outs(%e : tensor<7x5xf32>) -> tensor<7x5xf32>
  return %s : tensor<7x5xf32>
}

// -----
#n = #flow.mesh<"m", ["tp" = 3]>
// A part of an input is made from the whole; an output stays as constrained.
// CHECK-LABEL: func.func @partial_input(
// CHECK-SAME: %[[X:.*]]: !flow.dist<7x5xf32, #mesh, [B]>) -> !flow.dist<7x5xf32, #mesh, [P(sum)]>
// CHECK: flow.boxing %[[X]] : {{.*}}[B]> -> {{.*}}[P(sum)]>
// CHECK-NOT: flow.boxing
// CHECK: return
func.func @partial_input(%x: tensor<7x5xf32>) -> tensor<7x5xf32> {
  %xc = flow.constrain %x to #n [#flow.sbp<P(sum)>] : tensor<7x5xf32>
  %e = tensor.empty() : tensor<7x5xf32>
  %y = linalg.negf ins(%xc : tensor<7x5xf32>) outs(%e : tensor<7x5xf32>) -> tensor<7x5xf32>
  %yc = flow.constrain %y to #n [#flow.sbp<P(sum)>] : tensor<7x5xf32>
  return %yc : tensor<7x5xf32>
}

// -----
#n = #flow.mesh<"m", ["tp" = 3]>
// The normalised axis is split: its maximum and sum are reduced, not the tensor.
// CHECK-LABEL: func.func @softmax_on_split_axis(
// CHECK-NOT: linalg.softmax
// CHECK: flow.boxing {{.*}}<7xf32, #mesh, [P(max)]> -> !flow.dist<7xf32, #mesh, [B]>
// CHECK: flow.boxing {{.*}}<7xf32, #mesh, [P(sum)]> -> !flow.dist<7xf32, #mesh, [B]>
// CHECK-NOT: flow.boxing
// CHECK: return
func.func @softmax_on_split_axis(%x: tensor<7x5xf32>) -> tensor<7x5xf32> {
  %xc = flow.constrain %x to #n [#flow.sbp<S(1)>] : tensor<7x5xf32>
  %e = tensor.empty() : tensor<7x5xf32>
  %y = linalg.softmax dimension(1) ins(%xc : tensor<7x5xf32>) outs(%e : tensor<7x5xf32>) -> tensor<7x5xf32>
  %yc = flow.constrain %y to #n [#flow.sbp<S(1)>] : tensor<7x5xf32>
  return %yc : tensor<7x5xf32>
}

// -----
#n = #flow.mesh<"m", ["tp" = 3]>
// Flattened channels are split in units; the weights follow.
// CHECK-LABEL: func.func @units(
// CHECK: flow.compute {{.*}}<2x6x5xf32, #mesh, [S(1)]>) -> !flow.dist<2x30xf32, #mesh, [S(1, unit = 5)]>
// CHECK: flow.compute {{.*}}[S(1, unit = 5)]>, {{.*}}<30x4xf32, #mesh, [S(0, unit = 5)]>) -> {{.*}}[P(sum)]>
func.func @units(%x: tensor<2x6x5xf32>, %w: tensor<30x4xf32>) -> tensor<2x4xf32> {
  %z = arith.constant 0.0 : f32
  %xc = flow.constrain %x to #n [#flow.sbp<S(1)>] : tensor<2x6x5xf32>
  %c = tensor.collapse_shape %xc [[0], [1, 2]] : tensor<2x6x5xf32> into tensor<2x30xf32>
  %e = tensor.empty() : tensor<2x4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %y = linalg.matmul ins(%c, %w : tensor<2x30xf32>, tensor<30x4xf32>) outs(%f : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----
#n = #flow.mesh<"m", ["tp" = 3]>
// A branch on a uniform condition: one state for both sides.
// CHECK-LABEL: func.func @branch(
// CHECK: %[[R:.*]] = scf.if %{{.*}} -> (!flow.dist<7x5xf32, #mesh, [S(0)]>) {
// CHECK: scf.yield
// CHECK: } else {
// CHECK: scf.yield %{{.*}} : !flow.dist<7x5xf32, #mesh, [S(0)]>
// CHECK: return %[[R]]
func.func @branch(%k: i1, %x: tensor<7x5xf32>) -> tensor<7x5xf32> {
  %xc = flow.constrain %x to #n [#flow.sbp<S(0)>] : tensor<7x5xf32>
  %e = tensor.empty() : tensor<7x5xf32>
  %r = scf.if %k -> tensor<7x5xf32> {
    %y = linalg.exp ins(%xc : tensor<7x5xf32>) outs(%e : tensor<7x5xf32>) -> tensor<7x5xf32>
    scf.yield %y : tensor<7x5xf32>
  } else {
    scf.yield %xc : tensor<7x5xf32>
  }
  %rc = flow.constrain %r to #n [#flow.sbp<S(0)>] : tensor<7x5xf32>
  return %rc : tensor<7x5xf32>
}

// -----
#n = #flow.mesh<"m", ["tp" = 3]>
// A constant that is no splat is whole, and sliced where it is read split.
// CHECK-LABEL: func.func @constant(
// CHECK: %[[C:.*]] = flow.compute () -> !flow.dist<3xf32, #mesh, [B]>
// CHECK: flow.boxing %[[C]] : {{.*}}[B]> -> {{.*}}[S(0)]>
func.func @constant(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %xc = flow.constrain %x to #n [#flow.sbp<S(0)>] : tensor<3xf32>
  %e = tensor.empty() : tensor<3xf32>
  %y = linalg.add ins(%xc, %c : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %yc = flow.constrain %y to #n [#flow.sbp<S(0)>] : tensor<3xf32>
  return %yc : tensor<3xf32>
}
