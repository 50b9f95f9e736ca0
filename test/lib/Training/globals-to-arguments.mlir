// RUN: flow-opt %s --flow-globals-to-arguments | FileCheck %s

ml_program.global private @w(dense<1.0> : tensor<3xf32>) : tensor<3xf32>
ml_program.global private @mean(dense<2.0> : tensor<3xf32>) : tensor<3xf32> {flow.frozen}
ml_program.global private @unused(dense<3.0> : tensor<3xf32>) : tensor<3xf32>

// In the order of the first loads, behind the inputs; two loads are one argument.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<3xf32> {flow.name = "x"},
// CHECK-SAME: %[[MEAN:.*]]: tensor<3xf32> {flow.frozen, flow.initial = @mean, flow.kind = "state", flow.name = "mean"},
// CHECK-SAME: %[[W:.*]]: tensor<3xf32> {flow.initial = @w, flow.kind = "state", flow.name = "w"})
// CHECK-NOT: global_load_const
// CHECK: return %[[MEAN]], %[[W]], %[[W]]
func.func @main(%x: tensor<3xf32> {flow.name = "x"}) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %m = ml_program.global_load_const @mean : tensor<3xf32>
  %a = ml_program.global_load_const @w : tensor<3xf32>
  %b = ml_program.global_load_const @w : tensor<3xf32>
  return %m, %a, %b : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// Functions that only this module calls keep their loads.
// CHECK-LABEL: func.func private @helper
// CHECK: global_load_const
func.func private @helper() -> tensor<3xf32> {
  %a = ml_program.global_load_const @w : tensor<3xf32>
  return %a : tensor<3xf32>
}
