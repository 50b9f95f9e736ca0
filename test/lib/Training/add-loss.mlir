// RUN: flow-opt %s --flow-add-loss | FileCheck %s --check-prefixes=CHECK,ENTROPY
// RUN: flow-opt %s --flow-add-loss="loss=mse batch=9 micro-batches=3" | FileCheck %s --check-prefixes=CHECK,SQUARE
// RUN: flow-opt %s --flow-add-loss="loss=output:aux micro-batches=2" | FileCheck %s --check-prefixes=CHECK,OUTPUT
// RUN: flow-opt %s --flow-add-loss="label-type=int32" | FileCheck %s --check-prefix=INT32

// States first, an input with a default among them.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %{{.*}}: tensor<4xf32> {flow.initial = @scale, flow.kind = "state", flow.name = "scale"}
// CHECK-SAME: %{{.*}}: tensor<4xf32> {flow.initial = @w, flow.kind = "state", flow.name = "w"}
// CHECK-SAME: %{{.*}}: tensor<3x4xf32> {flow.kind = "input", flow.name = "x"}
// ENTROPY-SAME: %[[LABEL:.*]]: tensor<3xi64> {flow.classes = {{[0-9]+}} : i64, flow.kind = "label", flow.name = "label"})
// SQUARE-SAME: %[[LABEL:.*]]: tensor<3x4xf32> {flow.kind = "label", flow.name = "label"})
// OUTPUT-NOT: label
// INT32: tensor<3xi32> {flow.classes = {{[0-9]+}} : i64, flow.kind = "label"
// CHECK-SAME: -> (tensor<f32> {flow.kind = "loss", flow.name = "loss"})

// The maximum is stopped; the label picks by the number of the class, not by a read at the label.
// ENTROPY: arith.maximumf
// ENTROPY: math.exp
// ENTROPY: math.log
// ENTROPY: linalg.generic {{.*}} ins(%{{.*}}, %[[LABEL]] : tensor<3x4xf32>, tensor<3xi64>)
// ENTROPY: linalg.index 1
// ENTROPY-NOT: tensor.extract
// ENTROPY: arith.constant 0.333333343 : f32

// The share of one of three micro-batches of 3x4 elements: 1/36.
// SQUARE: arith.constant 0.027777778 : f32

// OUTPUT: tensor.collapse_shape %{{.*}} [] : tensor<1xf32> into tensor<f32>
// OUTPUT: arith.constant 5.000000e-01 : f32

// CHECK-LABEL: func.func @eval(
// CHECK-SAME: %[[COUNT:[a-z0-9]*]]: tensor<i64> {flow.kind = "scalar", flow.name = "count"})
// ENTROPY-SAME: -> (tensor<f32> {flow.kind = "loss", flow.name = "loss"}, tensor<i64> {flow.kind = "correct", flow.name = "correct"})
// SQUARE-SAME: -> (tensor<f32> {flow.kind = "loss", flow.name = "loss"})
// ENTROPY: linalg.index 0
// SQUARE: linalg.index 0
// SQUARE: arith.constant 2.500000e-01 : f32
// CHECK-NOT: func.func @main
ml_program.global private @w(dense<1.0> : tensor<4xf32>) : tensor<4xf32>
ml_program.global private @scale(dense<1.0> : tensor<4xf32>) : tensor<4xf32>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<3x4xf32> {flow.kind = "input", flow.name = "x"},
                %scale: tensor<4xf32> {flow.default = @scale, flow.kind = "input", flow.name = "scale"},
                %w: tensor<4xf32> {flow.initial = @w, flow.kind = "state", flow.name = "w"})
    -> (tensor<3x4xf32> {flow.kind = "output", flow.name = "y"}, tensor<1xf32> {flow.kind = "output", flow.name = "aux"}) {
  %e = tensor.empty() : tensor<3x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w, %scale : tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %p, %b : f32
    linalg.yield %s : f32
  } -> tensor<3x4xf32>
  %aux = tensor.extract_slice %scale[0] [1] [1] : tensor<4xf32> to tensor<1xf32>
  return %y, %aux : tensor<3x4xf32>, tensor<1xf32>
}
