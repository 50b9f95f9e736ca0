// RUN: flow-opt %s --flow-infer-shapes --flow-legalize-onnx --split-input-file | FileCheck %s

// The last column is not reached by any window of stride 2: it is not padded for.
// CHECK-LABEL: func @conv_2d_pads_with_zeros
// CHECK: tensor.pad %{{.*}} low[0, 0, 1, 2] high[0, 0, 1, 0]
// CHECK: linalg.conv_2d_nchw_fchw {{.*}}strides = dense<[1, 2]>{{.*}} -> tensor<2x4x7x4xf32>
// CHECK: arith.addf
func.func @conv_2d_pads_with_zeros(%x: tensor<2x3x7x7xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) -> none {
  %y = flow.operator "onnx.Conv" since 11 (%x, %w, %b) {pads = array<i64: 1, 2, 1, 1>, strides = array<i64: 1, 2>} : (tensor<2x3x7x7xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> none
  return %y : none
}

// -----

// CHECK: affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d3 * 2 + d5 * 3)>
// CHECK-LABEL: func @groups_are_a_dim
// CHECK: linalg.generic
func.func @groups_are_a_dim(%x: tensor<2x6x20xf32>, %w: tensor<4x3x3xf32>) -> none {
  %y = flow.operator "onnx.Conv" since 11 (%x, %w) {group = 2 : i64, strides = array<i64: 2>, dilations = array<i64: 3>} : (tensor<2x6x20xf32>, tensor<4x3x3xf32>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @max_pool_pads_with_minus_infinity
// CHECK: %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK: tensor.pad
// CHECK: tensor.yield %[[LOW]]
// CHECK: arith.maximumf
func.func @max_pool_pads_with_minus_infinity(%x: tensor<2x3x7x7xf32>) -> none {
  %y = flow.operator "onnx.MaxPool" since 12 (%x) {kernel_shape = array<i64: 3, 3>, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<2x3x7x7xf32>) -> none
  return %y : none
}

// -----

// Windows at the border average fewer elements: the counts are a vector per padded dim.
// CHECK-LABEL: func @average_pool_counts
// CHECK: arith.constant dense<[2.000000e+00, 3.000000e+00, 3.000000e+00, 2.000000e+00]> : tensor<4xf32>
// CHECK: arith.divf
func.func @average_pool_counts(%x: tensor<2x3x4xf32>) -> none {
  %y = flow.operator "onnx.AveragePool" since 11 (%x) {kernel_shape = array<i64: 3>, pads = array<i64: 1, 1>} : (tensor<2x3x4xf32>) -> none
  return %y : none
}
