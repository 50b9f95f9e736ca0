// RUN: flow-opt %s --flow-infer-shapes --flow-legalize-onnx --split-input-file --verify-diagnostics

func.func @contracted_dims_differ(%x: tensor<6x5xf32>, %w: tensor<4x3xf32>) -> none {
  // expected-error @+1 {{operator onnx.MatMul (opset 13): the contracted dims differ: 5 and 4}}
  %y = flow.operator "onnx.MatMul" since 13 (%x, %w) {} : (tensor<6x5xf32>, tensor<4x3xf32>) -> none
  return %y : none
}

// -----

func.func @shapes_do_not_broadcast(%x: tensor<6x5xf32>, %w: tensor<4xf32>) -> none {
  // expected-error @+1 {{the operands' shapes [6, 5] and [4] do not broadcast to each other}}
  %y = flow.operator "onnx.Add" since 13 (%x, %w) {} : (tensor<6x5xf32>, tensor<4xf32>) -> none
  return %y : none
}

// -----

func.func @split_sizes(%x: tensor<6xf32>) -> none {
  // expected-error @+1 {{the 2 split sizes add up to 7, expected 6 in 2 results}}
  %y:2 = flow.operator "onnx.Split" since 11 (%x) {split = array<i64: 3, 4>} : (tensor<6xf32>) -> (none, none)
  return %y#0 : none
}

// -----

func.func @axis_out_of_range(%x: tensor<6xf32>) -> none {
  // expected-error @+1 {{axis 1 is out of range for rank 1}}
  %y = flow.operator "onnx.Softmax" since 13 (%x) {axis = 1 : i64} : (tensor<6xf32>) -> none
  return %y : none
}

// -----

func.func @too_large(%n: tensor<6xf32>) -> none {
  %shape = arith.constant dense<[1000000000, 1000000000]> : tensor<2xi64>
  // expected-error @+1 {{the result's shape is negative or too large}}
  %y = flow.operator "onnx.ConstantOfShape" since 9 (%shape) {} : (tensor<2xi64>) -> none
  return %y : none
}

// -----

func.func @window_larger_than_input(%x: tensor<1x1x2xf32>) -> none {
  // expected-error @+1 {{the window of 3 elements is larger than the padded input of 2}}
  %y = flow.operator "onnx.MaxPool" since 12 (%x) {kernel_shape = array<i64: 3>} : (tensor<1x1x2xf32>) -> none
  return %y : none
}

// -----

func.func @operand_is_missing(%x: tensor<2xf32>) -> none {
  // expected-error @+1 {{operand 1 is missing}}
  %y = flow.operator "onnx.Add" since 13 (%x) {} : (tensor<2xf32>) -> none
  return %y : none
}

// -----

func.func @reshape_of_another_count(%x: tensor<6xf32>) -> none {
  %shape = arith.constant dense<[4, -1]> : tensor<2xi64>
  // expected-error @+1 {{6 elements can't be divided into dims of 4 elements}}
  %y = flow.operator "onnx.Reshape" since 13 (%x, %shape) {} : (tensor<6xf32>, tensor<2xi64>) -> none
  return %y : none
}
