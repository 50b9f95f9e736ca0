// RUN: flow-opt %s --flow-infer-shapes --flow-legalize-onnx --split-input-file | FileCheck %s

// CHECK-LABEL: func @batch_norm_is_affine_per_channel
// CHECK: math.sqrt
// CHECK: linalg.generic {{.*}} : tensor<3xf32>, tensor<3xf32>
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: arith.addf
func.func @batch_norm_is_affine_per_channel(%x: tensor<2x3x4x5xf32>, %c: tensor<3xf32>) -> none {
  %y = flow.operator "onnx.BatchNormalization" since 15 (%x, %c, %c, %c, %c) {} : (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @softmax_stays_whole
// CHECK: linalg.softmax dimension(1) ins(%{{.*}} : tensor<2x3x4xf32>)
func.func @softmax_stays_whole(%x: tensor<2x3x4xf32>) -> none {
  %y = flow.operator "onnx.Softmax" since 13 (%x) {axis = 1 : i64} : (tensor<2x3x4xf32>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @old_softmax_flattens
// CHECK: tensor.collapse_shape %{{.*}} {{\[}}[0], [1, 2]]
// CHECK: linalg.softmax dimension(1) ins(%{{.*}} : tensor<2x12xf32>)
// CHECK: tensor.expand_shape
func.func @old_softmax_flattens(%x: tensor<2x3x4xf32>) -> none {
  %y = flow.operator "onnx.Softmax" since 11 (%x) {axis = 1 : i64} : (tensor<2x3x4xf32>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @reduce_mean_is_sum_then_division
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK: arith.addf
// CHECK: arith.divf
func.func @reduce_mean_is_sum_then_division(%x: tensor<2x3xf32>) -> none {
  %y = flow.operator "onnx.ReduceMean" since 13 (%x) {axes = array<i64: -1>, keepdims = 0 : i64} : (tensor<2x3xf32>) -> none
  return %y : none
}
