// RUN: flow-opt %s --flow-apply-constraints="mesh=dp=2,tp=3 sbp=w*=[B,S(0)];y=[S(0),P];out=[B,B] stage=/sec*=1" | FileCheck %s
// RUN: flow-opt %s --flow-apply-constraints="mesh=dp=2,tp=3 sbp=w*=[B,B] sbp=w*=[B,S(0)] sbp=/second=[S(0),S(0)] sbp=y=[S(0),P];out=[B,B] stage=/sec*=1" | FileCheck %s

// CHECK: #mesh = #flow.mesh<"m", ["dp" = 2, "tp" = 3]>
// CHECK: module attributes {flow.mesh = #mesh}

// A slot follows its parameter, shell patterns match, a node's output is found by
// the name inside its location, and only the forward part is tagged.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[W:.*]]: tensor<5x4xf32> {flow.name = "w1"}, %[[V:.*]]: tensor<5x4xf32> {flow.name = "w1.momentum", flow.slot_of = "w1"}
// CHECK-DAG: %[[WC:.*]] = flow.constrain %[[W]] to #mesh [#flow.sbp<B>, #flow.sbp<S(0)>] : tensor<5x4xf32>
// CHECK-DAG: flow.constrain %[[V]] to #mesh [#flow.sbp<B>, #flow.sbp<S(0)>] : tensor<5x4xf32>
// CHECK: linalg.exp ins(%[[WC]]
// CHECK: %[[Y:.*]] = linalg.exp {flow.stage = 1 : i64}
// CHECK: %[[YC:.*]] = flow.constrain %[[Y]] to #mesh [#flow.sbp<S(0)>, #flow.sbp<P(sum)>]
// CHECK: %[[G:.*]] = linalg.exp {flow.phase = #flow.phase<backward>} ins(%[[YC]]
// CHECK: %[[OUT:.*]] = flow.constrain %[[G]] to #mesh [#flow.sbp<B>, #flow.sbp<B>]
// CHECK: return %[[OUT]]
func.func @step(%w: tensor<5x4xf32> {flow.name = "w1"}, %v: tensor<5x4xf32> {flow.name = "w1.momentum", flow.slot_of = "w1"}) -> (tensor<5x4xf32> {flow.name = "out"}) {
  %e = tensor.empty() : tensor<5x4xf32>
  %0 = linalg.exp ins(%w : tensor<5x4xf32>) outs(%e : tensor<5x4xf32>) -> tensor<5x4xf32> loc("/first")
  %1 = linalg.exp ins(%0 : tensor<5x4xf32>) outs(%e : tensor<5x4xf32>) -> tensor<5x4xf32> loc("/second"("y"))
  %2 = linalg.exp {flow.phase = #flow.phase<backward>} ins(%1 : tensor<5x4xf32>) outs(%e : tensor<5x4xf32>) -> tensor<5x4xf32> loc("/second"("y"))
  return %2 : tensor<5x4xf32>
}

// The dims are the model's: a leading dim of micro-batches is not counted.
// CHECK-LABEL: func.func @micro(
// CHECK: flow.constrain %{{.*}} to #mesh [#flow.sbp<B>, #flow.sbp<S(1)>] : tensor<4x5x3xf32>
func.func @micro(%x: tensor<4x5x3xf32> {flow.name = "w2", flow.kind = "input"}) -> tensor<5x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<5x3xf32>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %e) -> tensor<5x3xf32> {
    %s = tensor.extract_slice %x[%i, 0, 0] [1, 5, 3] [1, 1, 1] : tensor<4x5x3xf32> to tensor<5x3xf32>
    scf.yield %s : tensor<5x3xf32>
  }
  return %r : tensor<5x3xf32>
}
