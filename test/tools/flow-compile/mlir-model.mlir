// A model in MLIR: the only public function is the model; values get names.
// RUN: flow-compile %s --emit=mlir:import | FileCheck %s
// RUN: flow-compile %s --emit=mlir:import --mlir-print-ir-after-all --mlir-timing 2>&1 | FileCheck %s --check-prefix=DEBUG

// CHECK: func.func @main(%{{.*}}: tensor<3x2xf32> {flow.kind = "input", flow.name = "x"} loc({{.*}}),
// CHECK-SAME: %{{.*}}: tensor<3x2xf32> {flow.kind = "input", flow.name = "arg1"} loc({{.*}}))
// CHECK-SAME: -> (tensor<3x2xf32> {flow.kind = "output", flow.name = "out0"})
// DEBUG-DAG: Execution time report
func.func @add(%x: tensor<3x2xf32> {flow.name = "x"}, %y: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %e = tensor.empty() : tensor<3x2xf32>
  %s = linalg.add ins(%x, %y : tensor<3x2xf32>, tensor<3x2xf32>) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  return %s : tensor<3x2xf32>
}
