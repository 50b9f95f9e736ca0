// RUN: flow-opt %s --flow-verify-import --split-input-file --verify-diagnostics

func.func @operator_left(%x: tensor<3xf32> {flow.kind = "input"}) -> (tensor<3xf32> {flow.kind = "output"}) {
  // expected-error @+1 {{is left after import}}
  %y = flow.operator "onnx.Relu" since 6 (%x) {} : (tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

// expected-error @+1 {{argument 0 has no flow.kind}}
func.func @no_kind(%x: tensor<3xf32>) {
  return
}

// -----

func.func @foreign_dialect(%x: memref<3xf32> {flow.kind = "input"}) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{is of a dialect that import does not end in}}
  %y = memref.load %x[%c0] : memref<3xf32>
  return
}

// -----

func.func @dynamic_shape(%x: tensor<3xf32> {flow.kind = "input"}, %n: index {flow.kind = "input"}) {
  // expected-error @+1 {{has a tensor of dynamic shape after import}}
  %y = tensor.empty(%n) : tensor<?xf32>
  return
}

// -----

func.func @no_name(%x: tensor<3xf32> {flow.kind = "input"}) {
  // expected-error @+1 {{has no location that names the model's node}}
  %y = tensor.empty() : tensor<3xf32>
  return
}
