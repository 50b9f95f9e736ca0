// RUN: flow-opt %s --flow-infer-shapes --flow-legalize-onnx --split-input-file | FileCheck %s

// The batch is read from the shape, the rest is inferred: all of it folds.
// CHECK-LABEL: func @shape_arithmetic_folds
// CHECK-NEXT: tensor.collapse_shape %{{.*}} {{\[}}[0], [1, 2]] : tensor<2x3x4xf32> into tensor<2x12xf32>
// CHECK-NEXT: return
func.func @shape_arithmetic_folds(%x: tensor<2x3x4xf32>) -> none {
  %s = flow.operator "onnx.Shape" since 15 (%x) {} : (tensor<2x3x4xf32>) -> none
  %zero = flow.operator "onnx.Constant" since 13 () {value_int = 0 : i64} : () -> none
  %batch = flow.operator "onnx.Gather" since 13 (%s, %zero) {} : (none, none) -> none
  %axes = flow.operator "onnx.Constant" since 13 () {value_ints = array<i64: 0>} : () -> none
  %b1 = flow.operator "onnx.Unsqueeze" since 13 (%batch, %axes) {} : (none, none) -> none
  %rest = flow.operator "onnx.Constant" since 13 () {value_ints = array<i64: -1>} : () -> none
  %new = flow.operator "onnx.Concat" since 13 (%b1, %rest) {axis = 0 : i64} : (none, none) -> none
  %y = flow.operator "onnx.Reshape" since 14 (%x, %new) {} : (tensor<2x3x4xf32>, none) -> none
  return %y : none
}

// -----

// Only the dims that change are touched: the batch stays apart.
// CHECK-LABEL: func @reshape_groups_finely
// CHECK: tensor.collapse_shape %{{.*}} {{\[}}[0], [1, 2]] : tensor<7x2x6xf32> into tensor<7x12xf32>
// CHECK: tensor.expand_shape %{{.*}} {{\[}}[0], [1, 2]] {{.*}} : tensor<7x12xf32> into tensor<7x3x4xf32>
func.func @reshape_groups_finely(%x: tensor<7x2x6xf32>) -> none {
  %new = arith.constant dense<[7, 3, 4]> : tensor<3xi64>
  %y = flow.operator "onnx.Reshape" since 14 (%x, %new) {} : (tensor<7x2x6xf32>, tensor<3xi64>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @division_by_zero_folds_to_zero
// CHECK: arith.constant dense<0> : tensor<i64>
func.func @division_by_zero_folds_to_zero() -> none {
  %one = arith.constant dense<1> : tensor<i64>
  %zero = arith.constant dense<0> : tensor<i64>
  %y = flow.operator "onnx.Div" since 14 (%one, %zero) {} : (tensor<i64>, tensor<i64>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @weights_never_fold
// CHECK: ml_program.global_load_const
// CHECK: arith.mulf
ml_program.global private @w(dense<2.0> : tensor<2xf32>) : tensor<2xf32>
func.func @weights_never_fold() -> none {
  %w = ml_program.global_load_const @w : tensor<2xf32>
  %y = flow.operator "onnx.Mul" since 14 (%w, %w) {} : (tensor<2xf32>, tensor<2xf32>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @slice_with_steps
// CHECK: tensor.extract_slice %{{.*}}[1, 0] [2, 5] [2, 1] : tensor<6x5xf32> to tensor<2x5xf32>
func.func @slice_with_steps(%x: tensor<6x5xf32>) -> none {
  %starts = arith.constant dense<1> : tensor<1xi64>
  %ends = arith.constant dense<-2> : tensor<1xi64>
  %axes = arith.constant dense<0> : tensor<1xi64>
  %steps = arith.constant dense<2> : tensor<1xi64>
  %y = flow.operator "onnx.Slice" since 13 (%x, %starts, %ends, %axes, %steps) {} : (tensor<6x5xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @gather_reads_a_captured_table
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<4xi64>)
// CHECK: tensor.extract %{{.*}} : tensor<6x5xf32>
func.func @gather_reads_a_captured_table(%x: tensor<6x5xf32>, %i: tensor<4xi64>) -> none {
  %y = flow.operator "onnx.Gather" since 13 (%x, %i) {} : (tensor<6x5xf32>, tensor<4xi64>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @old_and_new_axes
// CHECK: tensor.collapse_shape
// CHECK: tensor.expand_shape
func.func @old_and_new_axes(%x: tensor<6x1x5xf32>) -> none {
  %s = flow.operator "onnx.Squeeze" since 11 (%x) {axes = array<i64: 1>} : (tensor<6x1x5xf32>) -> none
  %axes = arith.constant dense<0> : tensor<1xi64>
  %y = flow.operator "onnx.Unsqueeze" since 13 (%s, %axes) {} : (none, tensor<1xi64>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @part_without_elements
// CHECK: tensor.empty() : tensor<0x5xf32>
// CHECK: tensor.extract_slice
func.func @part_without_elements(%x: tensor<6x5xf32>) -> (none, none) {
  %y:2 = flow.operator "onnx.Split" since 11 (%x) {split = array<i64: 0, 6>} : (tensor<6x5xf32>) -> (none, none)
  return %y#0, %y#1 : none, none
}
