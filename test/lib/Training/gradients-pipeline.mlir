// RUN: flow-opt --flow-gradients="of=y wrt=x,w" %s | FileCheck %s --check-prefix=Y
// RUN: flow-opt --flow-gradients="of=loss loss=mse" %s | FileCheck %s --check-prefix=LOSS

// The gradients of sum(y) stand behind the outputs.
// Y: func.func @main
// Y-SAME: tensor<3x4xf32> {flow.kind = "output", flow.name = "y"}
// Y-SAME: tensor<3x5xf32> {flow.kind = "output", flow.name = "grad_x"}
// Y-SAME: tensor<5x4xf32> {flow.kind = "output", flow.name = "grad_w"}

// The loss comes first; by default the gradients are those of the parameters.
// LOSS: func.func @main
// LOSS-SAME: tensor<3x4xf32> {flow.kind = "label", flow.name = "label"}
// LOSS-SAME: -> (tensor<f32> {flow.kind = "output", flow.name = "loss"},
// LOSS-SAME: tensor<3x4xf32> {flow.kind = "output", flow.name = "y"},
// LOSS-SAME: tensor<5x4xf32> {flow.kind = "output", flow.name = "grad_w"})
// LOSS-NOT: @eval
// LOSS-NOT: @step

ml_program.global private @w(dense<1.0> : tensor<5x4xf32>) : tensor<5x4xf32>
func.func @main(%x: tensor<3x5xf32> {flow.kind = "input", flow.name = "x"},
                %w: tensor<5x4xf32> {flow.initial = @w, flow.kind = "state", flow.name = "w"})
    -> (tensor<3x4xf32> {flow.kind = "output", flow.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<3x5xf32>, tensor<5x4xf32>) outs(%f : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
