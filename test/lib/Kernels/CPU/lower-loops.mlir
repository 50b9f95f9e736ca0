// RUN: flow-opt %s --pass-pipeline='builtin.module(flow-bufferize-kernels,func.func(flow-lower-loops{vector-bits=256 chunks=1},canonicalize))' --split-input-file --verify-diagnostics | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>

// A pooling with stride two: lanes are outputs, two loads and a shuffle each.
// CHECK-LABEL: func.func @pooling
// CHECK: scf.for {{.*}} iter_args(%{{.*}}) -> (vector<8xf32>)
// CHECK: vector.shuffle
// CHECK: arith.maximumf {{.*}} vector<8xf32>
func.func @pooling(%x: tensor<2x3x16x16xf32>) -> tensor<2x3x8x8xf32> attributes {flow.kernel} {
  %z = arith.constant 0xFF800000 : f32
  %w = tensor.empty() : tensor<2x2xf32>
  %e = tensor.empty() : tensor<2x3x8x8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %0 = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<2x3x16x16xf32>, tensor<2x2xf32>) outs(%f : tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  return %0 : tensor<2x3x8x8xf32>
}

// All outputs of a point are computed before one is stored: they may lie over the inputs.
// CHECK-LABEL: func.func @in_place
// CHECK: vector.load
// CHECK: vector.load
// CHECK-NOT: vector.store
// CHECK: arith.addf
// CHECK: arith.subf
// CHECK: vector.store
// CHECK: vector.store
func.func @in_place(%x: tensor<16xf32>, %y: tensor<16xf32>) -> (tensor<16xf32> {flow.inplace = 0 : i64}, tensor<16xf32> {flow.inplace = 1 : i64}) attributes {flow.kernel} {
  %0 = arith.addf %x, %y : tensor<16xf32>
  %1 = arith.subf %x, %y : tensor<16xf32>
  return %0, %1 : tensor<16xf32>, tensor<16xf32>
}

// Identity spaces are walked by one loop.
// CHECK-LABEL: func.func @merged
// CHECK: %[[N:.*]] = arith.constant 120 : index
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[N]]
// CHECK-NOT: scf.for
// CHECK: return
func.func @merged(%x: tensor<3x5x8xf32>) -> tensor<3x5x8xf32> attributes {flow.kernel} {
  %0 = arith.negf %x : tensor<3x5x8xf32>
  return %0 : tensor<3x5x8xf32>
}

// -----

func.func @pad(%x: tensor<4xf32>) -> tensor<6xf32> attributes {flow.kernel} {
  // expected-error @+1 {{pads with a value that is not constant}}
  %0 = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    %c = arith.index_cast %i : index to i64
    %f = arith.sitofp %c : i64 to f32
    tensor.yield %f : f32
  } : tensor<4xf32> to tensor<6xf32>
  return %0 : tensor<6xf32>
}
