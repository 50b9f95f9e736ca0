// RUN: flow-opt %s --split-input-file --flow-form-kernels | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>
#tn_a = affine_map<(m, n, k) -> (k, m)>
#tn_b = affine_map<(m, n, k) -> (k, n)>
#tn_c = affine_map<(m, n, k) -> (m, n)>

// The bias joins the matmul, the flattened copy leaves by the same kernel; the
// gradient stays apart because its all-reduce must not wait; the update is one
// kernel that may write over its states.
// CHECK-LABEL: func.func @step
// CHECK: %[[A:.*]]:2 = call @k0(%arg1, %arg2, %arg3)
// CHECK: %[[G:.*]] = call @k1(%arg1, %[[A]]#0) {flow.phase = #flow.phase<backward>}
// CHECK: %[[E:.*]] = tensor.empty
// CHECK: %[[R:.*]] = ccl.all_reduce sum %[[G]] into %[[E]]
// CHECK: %[[U:.*]]:2 = call @k2(%arg4, %[[R]], %arg2, %arg5) {flow.phase = #flow.phase<update>}
// CHECK: return %[[U]]#1, %[[U]]#0, %[[A]]#1
func.func @step(%c0: index, %x: tensor<6x5xf32>, %w: tensor<5x4xf32>, %b: tensor<4xf32>, %v: tensor<5x4xf32>, %lr: tensor<f32>)
    -> (tensor<5x4xf32> {flow.tied = 2 : i64}, tensor<5x4xf32> {flow.tied = 4 : i64}, tensor<24xf32>) attributes {flow.class} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
  %m = linalg.matmul ins(%x, %w : tensor<6x5xf32>, tensor<5x4xf32>) outs(%f : tensor<6x4xf32>) -> tensor<6x4xf32>
  %a = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %b : tensor<6x4xf32>, tensor<4xf32>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<6x4xf32>
  %r = tensor.collapse_shape %a [[0, 1]] : tensor<6x4xf32> into tensor<24xf32>
  %e2 = tensor.empty() : tensor<5x4xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<5x4xf32>) -> tensor<5x4xf32>
  %g = linalg.generic {indexing_maps = [#tn_a, #tn_b, #tn_c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %a : tensor<6x5xf32>, tensor<6x4xf32>) outs(%f2 : tensor<5x4xf32>) attrs = {flow.phase = #flow.phase<backward>} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %t, %o : f32
    linalg.yield %s : f32
  } -> tensor<5x4xf32>
  %ge = tensor.empty() : tensor<5x4xf32>
  %gr = ccl.all_reduce sum %g into %ge axes ["dp"] : tensor<5x4xf32> into tensor<5x4xf32>
  %mu = arith.constant 0.9 : f32
  %v1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%v, %gr : tensor<5x4xf32>, tensor<5x4xf32>) outs(%e2 : tensor<5x4xf32>) attrs = {flow.phase = #flow.phase<update>} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %mu : f32
    %s = arith.addf %t, %q : f32
    linalg.yield %s : f32
  } -> tensor<5x4xf32>
  %lrs = tensor.extract %lr[] : tensor<f32>
  %w1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %v1 : tensor<5x4xf32>, tensor<5x4xf32>) outs(%e2 : tensor<5x4xf32>) attrs = {flow.phase = #flow.phase<update>} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %lrs, %q : f32
    %s = arith.subf %p, %t : f32
    linalg.yield %s : f32
  } -> tensor<5x4xf32>
  return %w1, %v1, %r : tensor<5x4xf32>, tensor<5x4xf32>, tensor<24xf32>
}

// CHECK-LABEL: func.func private @k0
// CHECK-SAME: attributes {flow.kernel}
// CHECK: linalg.matmul
// CHECK: arith.addf
// CHECK: tensor.collapse_shape
// CHECK-LABEL: func.func private @k2
// CHECK-SAME: -> (tensor<5x4xf32> {flow.inplace = 0 : i64}, tensor<5x4xf32> {flow.inplace = 2 : i64})

// -----

#id = affine_map<(i, j) -> (i, j)>

// Equal kernels are one function; coordinates come first where they are used.
// CHECK-LABEL: func.func @layers
// CHECK: %[[A:.*]] = call @[[K:.*]](%arg0, %arg1)
// CHECK: %[[R:.*]] = ccl.all_reduce sum %[[A]]
// CHECK: call @[[K]](%arg0, %[[R]])
func.func @layers(%c: index, %x: tensor<3x5xf32>) -> tensor<3x5xf32> attributes {flow.class} {
  %e = tensor.empty() : tensor<3x5xf32>
  %g = tensor.empty() : tensor<3x5xf32>
  %o = affine.apply affine_map<(c) -> (c * 3)>(%c)
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%p: f32, %q: f32):
    %i = linalg.index 0 : index
    %j = arith.addi %i, %o : index
    %k = arith.index_cast %j : index to i64
    %f = arith.sitofp %k : i64 to f32
    %s = arith.addf %p, %f : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  %r = ccl.all_reduce sum %0 into %g axes ["dp"] : tensor<3x5xf32> into tensor<3x5xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%r : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%p: f32, %q: f32):
    %i = linalg.index 0 : index
    %j = arith.addi %i, %o : index
    %k = arith.index_cast %j : index to i64
    %f = arith.sitofp %k : i64 to f32
    %s = arith.addf %p, %f : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  return %1 : tensor<3x5xf32>
}
