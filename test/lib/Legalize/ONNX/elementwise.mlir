// RUN: flow-opt %s --flow-infer-shapes --flow-legalize-onnx --split-input-file | FileCheck %s

// The size-1 dim is dropped, so that each map is a projected permutation.
// CHECK-DAG: #[[FULL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func @add_broadcasts
// CHECK: %[[B:.*]] = tensor.collapse_shape %{{.*}} {{\[}}[0, 1]] : tensor<1x5xf32> into tensor<5xf32>
// CHECK: linalg.generic {indexing_maps = [#[[FULL]], #[[ROW]], #[[FULL]]], iterator_types = ["parallel", "parallel"]} ins(%{{.*}}, %[[B]]
// CHECK: arith.addf
func.func @add_broadcasts(%x: tensor<6x5xf32>, %b: tensor<1x5xf32>) -> tensor<*xf32> {
  %y = flow.operator "onnx.Add" since 14 (%x, %b) {} : (tensor<6x5xf32>, tensor<1x5xf32>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// -----

// A NaN is not less than zero: it stays.
// CHECK-LABEL: func @relu_is_select_of_compare
// CHECK: %[[C:.*]] = arith.cmpf ugt, %[[X:.*]], %[[Z:.*]] : f32
// CHECK: arith.select %[[C]], %[[X]], %
func.func @relu_is_select_of_compare(%x: tensor<3xf32>) -> none {
  %y = flow.operator "onnx.Relu" since 6 (%x) {} : (tensor<3xf32>) -> none
  return %y : none
}

// -----

// CHECK-LABEL: func @exp_of_f16_is_computed_in_f32
// CHECK: arith.extf
// CHECK: math.exp %{{.*}} : f32
// CHECK: arith.truncf
func.func @exp_of_f16_is_computed_in_f32(%x: tensor<3xf16>) -> none {
  %y = flow.operator "onnx.Exp" since 13 (%x) {} : (tensor<3xf16>) -> none
  return %y : none
}

// -----

// Division by zero or by -1 traps on processors: neither reaches divsi.
// CHECK-LABEL: func @integer_division_never_traps
// CHECK: arith.cmpi eq
// CHECK: arith.cmpi eq
// CHECK: arith.ori
// CHECK: %[[SAFE:.*]] = arith.select
// CHECK: arith.divsi %{{.*}}, %[[SAFE]]
func.func @integer_division_never_traps(%x: tensor<3xi32>, %y: tensor<3xi32>) -> none {
  %z = flow.operator "onnx.Div" since 14 (%x, %y) {} : (tensor<3xi32>, tensor<3xi32>) -> none
  return %z : none
}

// -----

// CHECK-LABEL: func @unsigned_arguments_become_signless
// CHECK-SAME: tensor<3xi8> {flow.unsigned}
// CHECK: arith.divui
func.func @unsigned_arguments_become_signless(%x: tensor<3xui8>) -> none {
  %z = flow.operator "onnx.Div" since 14 (%x, %x) {} : (tensor<3xui8>, tensor<3xui8>) -> none
  return %z : none
}

// -----

// CHECK-LABEL: func @clip_with_attributes
// CHECK-DAG: arith.constant 6.0
// CHECK-DAG: arith.cmpf olt
// CHECK-DAG: arith.cmpf olt
func.func @clip_with_attributes(%x: tensor<3xf32>) -> none {
  %z = flow.operator "onnx.Clip" since 6 (%x) {min = 0.0 : f32, max = 6.0 : f32} : (tensor<3xf32>) -> none
  return %z : none
}

// -----

// CHECK-LABEL: func @pow_by_two_is_a_product
// CHECK: arith.mulf %[[X:.*]], %[[X]]
// CHECK-NOT: math.powf
func.func @pow_by_two_is_a_product(%x: tensor<3xf32>) -> none {
  %two = arith.constant dense<2.0> : tensor<f32>
  %z = flow.operator "onnx.Pow" since 15 (%x, %two) {} : (tensor<3xf32>, tensor<f32>) -> none
  return %z : none
}
