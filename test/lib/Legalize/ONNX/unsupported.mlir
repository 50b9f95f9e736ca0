// All that is not supported is reported at once, with node, operator and version.
// RUN: not flow-opt %s --flow-infer-shapes --flow-legalize-onnx 2>&1 | FileCheck %s

// CHECK: error: not supported (4):
// CHECK-NEXT: input 'x': dim 0 is dynamic; fix it with --dim N=N or --batch=N
// CHECK-NEXT: node 'a': operator com.microsoft.FusedConv (opset 1)
// CHECK-NEXT: node 'b': operator onnx.Unknown (opset 9)
// CHECK-NEXT: node 'c': operator onnx.BatchNormalization (opset 15): BatchNormalization in training mode
func.func @main(%x: tensor<?x3xf32> {flow.name = "x", flow.dims = ["N", ""]}, %y: tensor<2x3xf32>, %s: tensor<3xf32>) -> (none, none, none) {
  %a = flow.operator "com.microsoft.FusedConv" since 1 (%x) {} : (tensor<?x3xf32>) -> none loc("a")
  %b = flow.operator "onnx.Unknown" since 9 (%a) {} : (none) -> none loc("b")
  %c = flow.operator "onnx.BatchNormalization" since 15 (%y, %s, %s, %s, %s) {training_mode = 1 : i64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> none loc("c")
  return %a, %b, %c : none, none, none
}
