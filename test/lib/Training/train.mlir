// The whole room on one small model: form II to form III.
// RUN: flow-opt %s --flow-train="batch=3 optimizer=sgd,lr=0.1,momentum=0.9" | FileCheck %s

// CHECK-DAG: ml_program.global private @w(#flow.weights<"m.onnx", 0, 80> : tensor<5x4xf32>)
// CHECK-DAG: ml_program.global private @b(dense<1.000000e+00> : tensor<4xf32>)
// CHECK-DAG: ml_program.global private @w.momentum(dense<0.000000e+00> : tensor<5x4xf32>)
// CHECK-DAG: ml_program.global private @b.momentum(dense<0.000000e+00> : tensor<4xf32>)
ml_program.global private @w(#flow.weights<"m.onnx", 0, 80> : tensor<5x4xf32>) : tensor<5x4xf32>
ml_program.global private @b(dense<1.0> : tensor<4xf32>) : tensor<4xf32>

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[W:[^:]*]]: tensor<5x4xf32> {flow.initial = @w, flow.kind = "state", flow.name = "w"}
// CHECK-SAME: %[[B:[^:]*]]: tensor<4xf32> {flow.initial = @b, flow.kind = "state", flow.name = "b"}
// CHECK-SAME: %[[VW:[^:]*]]: tensor<5x4xf32> {flow.initial = @w.momentum, flow.kind = "state", flow.name = "w.momentum", flow.slot_of = "w"}
// CHECK-SAME: %[[VB:[^:]*]]: tensor<4xf32> {flow.initial = @b.momentum, flow.kind = "state", flow.name = "b.momentum", flow.slot_of = "b"}
// CHECK-SAME: %[[X:[^:]*]]: tensor<3x5xf32> {flow.kind = "input", flow.name = "x"}
// CHECK-SAME: %[[LABEL:[^:]*]]: tensor<3xi64> {flow.classes = {{[0-9]+}} : i64, flow.kind = "label", flow.name = "label"}
// CHECK-SAME: %[[LR:[^:]*]]: tensor<f64> {flow.default = 1.000000e-01 : f64, flow.kind = "scalar", flow.name = "lr"}
// CHECK-SAME: -> (tensor<5x4xf32> {flow.kind = "state", flow.name = "w", flow.tied = 0 : i64}
// CHECK-SAME: tensor<4xf32> {flow.kind = "state", flow.name = "b", flow.tied = 1 : i64}
// CHECK-SAME: tensor<5x4xf32> {flow.kind = "state", flow.name = "w.momentum", flow.tied = 2 : i64}
// CHECK-SAME: tensor<4xf32> {flow.kind = "state", flow.name = "b.momentum", flow.tied = 3 : i64}
// CHECK-SAME: tensor<f32> {flow.kind = "loss", flow.name = "loss"})
// CHECK: linalg.matmul
// the weight's gradient is a contraction again, of the backward phase
// CHECK: linalg.contract {{.*}}flow.phase = #flow.phase<backward>{{.*}} ins(%[[X]],
// CHECK-SAME: -> tensor<5x4xf32>
// CHECK: linalg.generic {{.*}} ins(%[[VW]], {{.*}}flow.phase = #flow.phase<update>
// CHECK: linalg.generic {{.*}} ins(%[[W]], %{{.*}}, %[[LR]] {{.*}}flow.phase = #flow.phase<update>

// CHECK-LABEL: func.func @eval(
// CHECK-SAME: flow.name = "w"
// CHECK-NOT: momentum
// CHECK-SAME: tensor<i64> {flow.kind = "scalar", flow.name = "count"}
// CHECK-SAME: -> (tensor<f32> {flow.kind = "loss", flow.name = "loss"}, tensor<i64> {flow.kind = "correct", flow.name = "correct"})
// CHECK-NOT: func.func @main
func.func @main(%x: tensor<3x5xf32> {flow.name = "x", flow.kind = "input"})
    -> (tensor<3x4xf32> {flow.name = "y", flow.kind = "output"}) {
  %zero = arith.constant 0.0 : f32
  %w = ml_program.global_load_const @w : tensor<5x4xf32>
  %b = ml_program.global_load_const @b : tensor<4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  %m = linalg.matmul ins(%x, %w : tensor<3x5xf32>, tensor<5x4xf32>) outs(%f : tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m, %b : tensor<3x4xf32>, tensor<4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
