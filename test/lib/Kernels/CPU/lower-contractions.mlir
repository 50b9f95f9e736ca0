// RUN: flow-opt %s --pass-pipeline='builtin.module(flow-bufferize-kernels,func.func(flow-lower-contractions{vector-bits=256 registers=16 chunks=1},canonicalize))' | FileCheck %s
// RUN: flow-opt %s --pass-pipeline='builtin.module(flow-bufferize-kernels,func.func(flow-lower-contractions{vector-bits=512 registers=32 chunks=4},canonicalize))' | FileCheck %s --check-prefix=WIDE

#id = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>

// Six rows by two vectors of eight, bias where the tile is stored. The panel of B
// is packed because more than four panels of rows read it.
// CHECK-LABEL: func.func @bias
// CHECK: memref.alloc() {{.*}}flow.scratch
// CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// CHECK-COUNT-12: vector.fma
// CHECK: scf.yield
// CHECK: arith.addf {{.*}} vector<8xf32>
// CHECK: vector.store
// CHECK-NOT: linalg.generic
// WIDE-LABEL: func.func @bias
// WIDE: scf.forall (%{{.*}}) in (4)
// WIDE: vector.fma {{.*}} : vector<16xf32>
func.func @bias(%x: tensor<96x128xf32>, %w: tensor<128x64xf32>, %b: tensor<64xf32>) -> tensor<96x64xf32> attributes {flow.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96x64xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  %m = linalg.matmul ins(%x, %w : tensor<96x128xf32>, tensor<128x64xf32>) outs(%f : tensor<96x64xf32>) -> tensor<96x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %b : tensor<96x64xf32>, tensor<64xf32>) outs(%e : tensor<96x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<96x64xf32>
  return %0 : tensor<96x64xf32>
}

// A convolution of six channels reads its input where it lies: nothing is packed,
// and rows of ten outputs are two vectors, the second one masked.
// CHECK-LABEL: func.func @convolution
// CHECK-NOT: memref.alloc
// CHECK: vector.maskedload
// CHECK: vector.fma
func.func @convolution(%x: tensor<2x3x14x14xf32>, %w: tensor<6x3x5x5xf32>) -> tensor<2x6x10x10xf32> attributes {flow.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x6x10x10xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x6x10x10xf32>) -> tensor<2x6x10x10xf32>
  %0 = linalg.conv_2d_nchw_fchw {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<2x3x14x14xf32>, tensor<6x3x5x5xf32>) outs(%f : tensor<2x6x10x10xf32>) -> tensor<2x6x10x10xf32>
  return %0 : tensor<2x6x10x10xf32>
}

// The product of a and exp(b) is no contraction, though upstream's matcher says so.
// CHECK-LABEL: func.func @not_a_contraction
// CHECK: linalg.generic
// CHECK: math.exp
func.func @not_a_contraction(%x: tensor<9x8xf32>, %w: tensor<8x16xf32>) -> tensor<9x16xf32> attributes {flow.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x16xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<9x16xf32>) -> tensor<9x16xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<9x8xf32>, tensor<8x16xf32>) outs(%f : tensor<9x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = math.exp %q : f32
    %s = arith.mulf %p, %r : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<9x16xf32>
  return %0 : tensor<9x16xf32>
}
