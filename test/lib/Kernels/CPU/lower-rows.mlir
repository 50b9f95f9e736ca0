// RUN: flow-opt %s --pass-pipeline='builtin.module(flow-bufferize-kernels,func.func(flow-lower-rows{vector-bits=256 chunks=4},canonicalize))' | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>

// One loop over rows holds all four steps; the exponentials that two steps read are kept.
// CHECK-LABEL: func.func @softmax
// CHECK: scf.for
// CHECK: vector.reduction <maxnumf>
// CHECK: math.exp
// CHECK: vector.reduction <add>
// CHECK: arith.divf
// CHECK-NOT: math.exp {{.*}} : f32
// CHECK: return
func.func @softmax(%x: tensor<6x32xf32>) -> tensor<6x32xf32> attributes {flow.kernel} {
  %e = tensor.empty() : tensor<6x32xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<6x32xf32>) outs(%e : tensor<6x32xf32>) -> tensor<6x32xf32>
  return %y : tensor<6x32xf32>
}

// Column sums of a large tensor: one partial row per chunk, added in the order of chunks.
// CHECK-LABEL: func.func @columns
// CHECK: scf.forall (%{{.*}}) in (4)
// CHECK: scf.for
// CHECK-COUNT-3: arith.addf {{.*}} : f32
// CHECK: memref.store
func.func @columns(%x: tensor<256x96xf32>) -> (tensor<256x96xf32>, tensor<96xf32>) attributes {flow.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x96xf32>
  %g = tensor.empty() : tensor<96xf32>
  %f = linalg.fill ins(%z : f32) outs(%g : tensor<96xf32>) -> tensor<96xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<256x96xf32>) outs(%e : tensor<256x96xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = arith.mulf %p, %p : f32
    linalg.yield %r : f32
  } -> tensor<256x96xf32>
  %1 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]} ins(%0 : tensor<256x96xf32>) outs(%f : tensor<96xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<96xf32>
  return %0, %1 : tensor<256x96xf32>, tensor<96xf32>
}

// A row that reads another row's sum is left to the general path.
// CHECK-LABEL: func.func @across_rows
// CHECK: linalg.generic
func.func @across_rows(%x: tensor<6x6xf32>) -> tensor<6x6xf32> attributes {flow.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x6xf32>
  %g = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%z : f32) outs(%g : tensor<6xf32>) -> tensor<6xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<6x6xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<6xf32>
  %1 = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %0 : tensor<6x6xf32>, tensor<6xf32>) outs(%e : tensor<6x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.divf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<6x6xf32>
  return %1 : tensor<6x6xf32>
}
