// RUN: flow-opt %s --flow-set-dims="batch=4 N=8" --flow-infer-shapes | FileCheck %s
// RUN: flow-opt %s --flow-set-dims="dims=batch=4,N=8" --flow-infer-shapes | FileCheck %s
// RUN: not flow-opt %s --flow-set-dims="M=8" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not flow-opt %s --flow-set-dims="B=8 batch=4" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not flow-opt %s --flow-set-dims="N=0" 2>&1 | FileCheck %s --check-prefix=ZERO

// CHECK: func @main(%{{.*}}: tensor<4x8xf32> {flow.kind = "input"}) -> (tensor<4x8xf32> {flow.kind = "output"})
// UNKNOWN: error: no input has a dim named 'M': the model's dims are 'B', 'N'
// TWICE: error: dim 'B' is the batch dim: it can't be 8 when the batch is 4
// ZERO: error: expected NAME=N with a positive number, got 'N=0'
func.func @main(%x: tensor<?x?xf32> {flow.dims = ["B", "N"], flow.kind = "input"}) -> (tensor<?x?xf32> {flow.dims = ["B", "N"], flow.kind = "output"}) {
  %y = flow.operator "onnx.Relu" since 6 (%x) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
