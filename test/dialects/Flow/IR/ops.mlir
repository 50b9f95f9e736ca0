// RUN: flow-opt %s --verify-roundtrip | FileCheck %s

#m = #flow.mesh<"m", ["dp" = 2, "tp" = 3]>
!x = !flow.dist<6x5xf32, #m, [S(0), S(1)]>
!w = !flow.dist<5x4xf32, #m, [B, S(0, unit = 2)]>
!y = !flow.dist<6x4xf32, #m, [S(0), P(sum)]>

// CHECK: #[[M:.*]] = #flow.mesh<"m", ["dp" = 2, "tp" = 3]>
// CHECK: #[[STAGE1:.*]] = #flow.mesh<"m", ["dp" = 2], stage = 1>
// CHECK-LABEL: func @compute_keeps_its_region
// CHECK: flow.compute (%{{.*}} : !flow.dist<6x5xf32, #[[M]], [S(0), S(1)]>, %{{.*}} : !flow.dist<5x4xf32, #[[M]], [B, S(0, unit = 2)]>) -> !flow.dist<6x4xf32, #[[M]], [S(0), P(sum)]> phase <backward> {
func.func @compute_keeps_its_region(%x: !x, %w: !w) -> !y {
  %p = flow.compute (%x : !x, %w : !w) -> !y phase <backward> {
  ^bb0(%a: tensor<6x5xf32>, %b: tensor<5x4xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<6x4xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
    %c = linalg.matmul ins(%a, %b : tensor<6x5xf32>, tensor<5x4xf32>) outs(%f : tensor<6x4xf32>) -> tensor<6x4xf32>
    flow.yield %c : tensor<6x4xf32>
  }
  return %p : !y
}

// CHECK-LABEL: func @boxing_and_constrain
func.func @boxing_and_constrain(%y: !y, %t: tensor<6x4xf32>) -> !flow.dist<6x4xf32, #m, [S(0), B]> {
  // CHECK: flow.boxing %{{.*}} phase <update> : !flow.dist<{{.*}}> -> !flow.dist<{{.*}}>
  %r = flow.boxing %y phase <update> : !y -> !flow.dist<6x4xf32, #m, [S(0), B]>
  // CHECK: flow.constrain %{{.*}} to #[[M]] [#flow.sbp<S(0)>, #flow.sbp<P(max)>] : tensor<6x4xf32>
  %c = flow.constrain %t to #m [#flow.sbp<S(0)>, #flow.sbp<P(max)>] : tensor<6x4xf32>
  return %r : !flow.dist<6x4xf32, #m, [S(0), B]>
}

// CHECK: ml_program.global private @w(#flow.weights<"model.onnx", 16, 80> : tensor<5x4xf32>) : tensor<5x4xf32>
ml_program.global private @w(#flow.weights<"model.onnx", 16, 80> : tensor<5x4xf32>) : tensor<5x4xf32>

// CHECK-LABEL: func @operator
func.func @operator(%x: tensor<?x5xf32>, %w: tensor<4x5xf32>) -> tensor<?x4xf32> {
  // CHECK: flow.absent
  %none = flow.absent
  // CHECK: flow.operator "onnx.Gemm" since 13(%{{.*}}) {transB = 1 : i64} : (tensor<?x5xf32>, tensor<4x5xf32>, none) -> tensor<?x4xf32>
  %y = flow.operator "onnx.Gemm" since 13 (%x, %w, %none) {transB = 1 : i64} : (tensor<?x5xf32>, tensor<4x5xf32>, none) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// CHECK: func.func private @other_stage(!flow.dist<4xf32, #[[STAGE1]], [B]>)
func.func private @other_stage(!flow.dist<4xf32, #flow.mesh<"m", ["dp" = 2], stage = 1>, [B]>)
