// RUN: split-file %s %t
// RUN: flow-opt %t/step.mlir --flow-export-gradients | FileCheck %s
// RUN: not flow-opt %t/none.mlir --flow-export-gradients 2>&1 | FileCheck %s --check-prefix=NONE

// The step becomes the program, its loss and gradients are outputs, the evaluation goes.
// CHECK-NOT: @eval
// CHECK-LABEL: func.func @main(
// CHECK-SAME: -> (tensor<f32> {flow.kind = "output", flow.name = "loss"}, tensor<3xf32> {flow.kind = "output", flow.name = "grad_w"})
// CHECK-NOT: @eval

// NONE: error: there is no function @step or @main

//--- step.mlir
func.func @step(%w: tensor<3xf32>, %l: tensor<f32>)
    -> (tensor<f32> {flow.kind = "loss", flow.name = "loss"},
        tensor<3xf32> {flow.kind = "gradient", flow.name = "grad_w"}) {
  return %l, %w : tensor<f32>, tensor<3xf32>
}
func.func @eval(%l: tensor<f32>) -> tensor<f32> {
  return %l : tensor<f32>
}

//--- none.mlir
func.func @other() {
  return
}
