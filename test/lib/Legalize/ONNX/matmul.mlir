// RUN: flow-opt %s --flow-infer-shapes --flow-legalize-onnx --split-input-file | FileCheck %s

// CHECK-LABEL: func @gemm_is_contraction_then_bias
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %{{.*}} : tensor<6x5xf32>, tensor<4x5xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<6x4xf32>, tensor<4xf32>)
// CHECK: arith.addf
func.func @gemm_is_contraction_then_bias(%x: tensor<6x5xf32>, %w: tensor<4x5xf32>, %b: tensor<4xf32>) -> none {
  %y = flow.operator "onnx.Gemm" since 13 (%x, %w, %b) {transB = 1 : i64} : (tensor<6x5xf32>, tensor<4x5xf32>, tensor<4xf32>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @matmul_2d
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<6x5xf32>, tensor<5x4xf32>)
func.func @matmul_2d(%x: tensor<6x5xf32>, %w: tensor<5x4xf32>) -> none {
  %y = flow.operator "onnx.MatMul" since 13 (%x, %w) {} : (tensor<6x5xf32>, tensor<5x4xf32>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @matmul_broadcasts_batch_dims
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %{{.*}} : tensor<2x3x6x5xf32>, tensor<3x5x4xf32>) {{.*}} -> tensor<2x3x6x4xf32>
func.func @matmul_broadcasts_batch_dims(%x: tensor<2x3x6x5xf32>, %w: tensor<3x5x4xf32>) -> none {
  %y = flow.operator "onnx.MatMul" since 13 (%x, %w) {} : (tensor<2x3x6x5xf32>, tensor<3x5x4xf32>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @half_accumulates_in_f32
// CHECK: linalg.matmul ins(%{{.*}} : tensor<6x5xf16>, tensor<5x4xf16>) outs(%{{.*}} : tensor<6x4xf32>)
// CHECK: arith.truncf
func.func @half_accumulates_in_f32(%x: tensor<6x5xf16>, %w: tensor<5x4xf16>) -> none {
  %y = flow.operator "onnx.MatMul" since 13 (%x, %w) {} : (tensor<6x5xf16>, tensor<5x4xf16>) -> none
  return %y : none
}
