// RUN: flow-opt %s --flow-add-optimizer="optimizer=sgd,lr=0.5" | FileCheck %s --check-prefixes=CHECK,PLAIN
// RUN: flow-opt %s --flow-add-optimizer="optimizer=sgd,lr=0.5,momentum=0.25" | FileCheck %s --check-prefixes=CHECK,MOMENTUM

// MOMENTUM: ml_program.global private @b.momentum(dense<0.000000e+00> : tensor<4xf64>)
// a narrow parameter has a wide slot
// MOMENTUM: ml_program.global private @w.momentum(dense<0.000000e+00> : tensor<3xf32>)
// PLAIN-NOT: momentum

// What has no gradient is a state without new value; slots stand behind all states.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[N:[^:]*]]: tensor<2xi64> {flow.kind = "state", flow.name = "n"}
// CHECK-SAME: %[[B:[^:]*]]: tensor<4xf64> {flow.kind = "state", flow.name = "b"}
// CHECK-SAME: %[[W:[^:]*]]: tensor<3xbf16> {flow.kind = "state", flow.name = "w"}
// MOMENTUM-SAME: %[[VB:[^:]*]]: tensor<4xf64> {flow.initial = @b.momentum, flow.kind = "state", flow.name = "b.momentum", flow.slot_of = "b"}
// MOMENTUM-SAME: %[[VW:[^:]*]]: tensor<3xf32> {flow.initial = @w.momentum, flow.kind = "state", flow.name = "w.momentum", flow.slot_of = "w"}
// CHECK-SAME: %[[GB:[^:]*]]: tensor<4xf64> {flow.kind = "input"
// CHECK-SAME: %[[LR:[^:]*]]: tensor<f64> {flow.default = 5.000000e-01 : f64, flow.kind = "scalar", flow.name = "lr"})
// CHECK-SAME: -> (tensor<4xf64> {flow.kind = "state", flow.name = "b", flow.tied = 1 : i64}
// CHECK-SAME: tensor<3xbf16> {flow.kind = "state", flow.name = "w", flow.tied = 2 : i64}
// MOMENTUM-SAME: tensor<4xf64> {flow.kind = "state", flow.name = "b.momentum", flow.tied = 3 : i64}
// MOMENTUM-SAME: tensor<3xf32> {flow.kind = "state", flow.name = "w.momentum", flow.tied = 4 : i64}
// CHECK-SAME: tensor<f32> {flow.kind = "loss", flow.name = "loss"})

// MOMENTUM: %[[V:.*]] = linalg.generic {{.*}} ins(%[[VB]], %[[GB]] : tensor<4xf64>, tensor<4xf64>) {{.*}}flow.phase = #flow.phase<update>
// MOMENTUM: arith.constant 2.500000e-01 : f64
// MOMENTUM: linalg.generic {{.*}} ins(%[[B]], %[[V]], %[[LR]] : tensor<4xf64>, tensor<4xf64>, tensor<f64>)
// PLAIN: linalg.generic {{.*}} ins(%[[B]], %[[GB]], %[[LR]] : tensor<4xf64>, tensor<4xf64>, tensor<f64>)
// the rate is rounded to the type of the sum, the narrow parameter rounded once
// CHECK: linalg.generic {{.*}} ins(%[[W]],
// CHECK: arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.mulf %{{.*}} : f32
// CHECK: arith.subf %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to bf16
func.func @step(%n: tensor<2xi64> {flow.kind = "state", flow.name = "n"},
                %b: tensor<4xf64> {flow.kind = "state", flow.name = "b"},
                %w: tensor<3xbf16> {flow.kind = "state", flow.name = "w"},
                %gb: tensor<4xf64> {flow.kind = "input", flow.name = "gb"},
                %gw: tensor<3xbf16> {flow.kind = "input", flow.name = "gw"},
                %loss: tensor<f32> {flow.kind = "input", flow.name = "l"})
    -> (tensor<f32> {flow.kind = "loss", flow.name = "loss"},
        tensor<4xf64> {flow.kind = "gradient", flow.name = "grad_b"},
        tensor<3xbf16> {flow.kind = "gradient", flow.name = "grad_w"}) {
  return %loss, %gb, %gw : tensor<f32>, tensor<4xf64>, tensor<3xbf16>
}
