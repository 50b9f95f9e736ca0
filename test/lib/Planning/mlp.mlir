// A training step of two layers on meshes: what the plan chooses.
// RUN: flow-opt %s --flow-train="batch=6 optimizer=sgd,lr=0.1,momentum=0.9" --flow-apply-constraints="mesh=dp=2" --flow-distribute --flow-verify-distribution | FileCheck %s --check-prefix=DP
// RUN: flow-opt %s --flow-train="batch=6 optimizer=sgd,lr=0.1,momentum=0.9" --flow-apply-constraints="mesh=dp=2,tp=2 sbp=fc1.weight=[B,S(0)];fc2.weight=[B,S(1)]" --flow-distribute --flow-verify-distribution | FileCheck %s --check-prefix=TP
// RUN: flow-opt %s --flow-train="batch=24 micro-batches=4 optimizer=sgd,lr=0.1" --flow-apply-constraints="mesh=dp=2" --flow-distribute --flow-verify-distribution | FileCheck %s --check-prefix=MICRO
// RUN: flow-opt %s --flow-train="batch=24 micro-batches=4 optimizer=sgd,lr=0.1,momentum=0.9" --flow-apply-constraints="mesh=rank=1 stage=/fc2=1" --flow-distribute --flow-verify-distribution | FileCheck %s --check-prefix=STAGE
// RUN: flow-opt %s --flow-train="batch=6 optimizer=sgd,lr=0.1" --flow-apply-constraints="mesh=tp=3 sbp=fc1.weight=[S(0)]" --flow-distribute --flow-verify-distribution | FileCheck %s --check-prefix=FOLLOW
// RUN: flow-opt %s --flow-train="batch=6 optimizer=sgd,lr=0.1" --flow-distribute --flow-verify-distribution | FileCheck %s --check-prefix=ONE

// Samples are split, parameters whole: per step one reduction of each gradient
// and one of the loss, nothing else.
// DP-LABEL: func.func @step(
// DP-SAME: <6x5xf32, #mesh, [S(0)]> {flow.kind = "input", flow.name = "x"}
// DP-SAME: <6xi64, #mesh, [S(0)]> {flow.classes = {{[0-9]+}} : i64, flow.kind = "label"
// DP: flow.boxing {{.*}}<f32, #mesh, [P(sum)]> -> !flow.dist<f32, #mesh, [B]>
// DP-COUNT-4: flow.boxing {{.*}}phase <backward> {{.*}}[P(sum)]> -> {{.*}}[B]>
// DP-NOT: flow.boxing
// DP-LABEL: func.func @eval(

// The column/row pair: one reduction of activations along tp forward, none
// backward (the model's input has no gradient). Bias and slots follow.
// TP-LABEL: func.func @step(
// TP-SAME: <7xf32, #mesh, [B, S(0)]> {flow.initial = @fc1.bias
// TP-SAME: <3xf32, #mesh, [B, B]> {flow.initial = @fc2.bias
// TP-SAME: <7x5xf32, #mesh, [B, S(0)]> {flow.initial = @fc1.weight.momentum
// TP: flow.boxing {{.*}}<6x3xf32, #mesh, [S(0), P(sum)]> -> !flow.dist<6x3xf32, #mesh, [S(0), B]>
// TP: flow.boxing {{.*}}<f32, #mesh, [P(sum), B]> -> !flow.dist<f32, #mesh, [B, B]>
// TP-COUNT-4: flow.boxing {{.*}}[P(sum), {{B|S\([01]\)}}]> -> {{.*}}[B, {{B|S\([01]\)}}]>
// TP-NOT: flow.boxing
// TP-LABEL: func.func @eval(

// Accumulators stay partial over the micro-batches.
// MICRO-LABEL: func.func @step(
// MICRO-SAME: <4x6x5xf32, #mesh, [S(1)]> {flow.kind = "input"
// MICRO: scf.for {{.*}} -> (!flow.dist<f32, #mesh, [P(sum)]>, !flow.dist<7x5xf32, #mesh, [P(sum)]>
// MICRO-NOT: flow.boxing
// MICRO: scf.yield
// MICRO-COUNT-5: flow.boxing
// MICRO-NOT: flow.boxing
// MICRO-LABEL: func.func @eval(

// Two stages: activations forward, their gradient backward; labels and fc2's
// state live on stage 1, the learning rate on both.
// STAGE-DAG: #[[S0:.*]] = #flow.mesh<"m", ["rank" = 1]>
// STAGE-DAG: #[[S1:.*]] = #flow.mesh<"m", ["rank" = 1], stage = 1>
// STAGE-LABEL: func.func @step(
// STAGE-SAME: <3x7xf32, #[[S1]], [B]> {flow.initial = @fc2.weight,
// STAGE-SAME: <3x7xf32, #[[S1]], [B]> {flow.initial = @fc2.weight.momentum,
// STAGE-SAME: <4x6xi64, #[[S1]], [B]> {flow.classes = {{[0-9]+}} : i64, flow.kind = "label"
// STAGE-SAME: <f64, #[[S0]], [B]> {{{[^}]*}}flow.name = "lr"}
// STAGE-SAME: <f64, #[[S1]], [B]> {{{[^}]*}}flow.name = "lr"}
// STAGE: scf.for
// STAGE: flow.boxing {{.*}}<6x7xf32, #[[S0]], {{.*}} -> !flow.dist<6x7xf32, #[[S1]]
// STAGE: flow.boxing {{.*}}phase <backward> : !flow.dist<6x7xf32, #[[S1]], {{.*}} -> !flow.dist<6x7xf32, #[[S0]]
// STAGE-NOT: flow.boxing
// STAGE: scf.yield

// One constraint is enough: the second layer follows.
// FOLLOW-LABEL: func.func @step(
// FOLLOW-SAME: <7xf32, #mesh, [S(0)]> {flow.initial = @fc1.bias
// FOLLOW-SAME: <3x7xf32, #mesh, [S(1)]> {flow.initial = @fc2.weight
// FOLLOW-SAME: <6x5xf32, #mesh, [B]> {flow.kind = "input"
// FOLLOW: flow.boxing {{.*}}<6x3xf32, #mesh, [P(sum)]> -> !flow.dist<6x3xf32, #mesh, [B]>
// FOLLOW-NOT: flow.boxing
// FOLLOW-LABEL: func.func @eval(

// ONE: #flow.mesh<"m", ["rank" = 1]>
ml_program.global private @fc1.weight(#flow.weights<"m.onnx", 0, 140> : tensor<7x5xf32>) : tensor<7x5xf32>
ml_program.global private @fc1.bias(dense<1.0> : tensor<7xf32>) : tensor<7xf32>
ml_program.global private @fc2.weight(#flow.weights<"m.onnx", 140, 84> : tensor<3x7xf32>) : tensor<3x7xf32>
ml_program.global private @fc2.bias(dense<1.0> : tensor<3xf32>) : tensor<3xf32>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @main(%x: tensor<6x5xf32> {flow.name = "x", flow.kind = "input"})
    -> (tensor<6x3xf32> {flow.name = "y", flow.kind = "output"}) {
  %zero = arith.constant 0.0 : f32
  %w1 = ml_program.global_load_const @fc1.weight : tensor<7x5xf32>
  %b1 = ml_program.global_load_const @fc1.bias : tensor<7xf32>
  %w2 = ml_program.global_load_const @fc2.weight : tensor<3x7xf32>
  %b2 = ml_program.global_load_const @fc2.bias : tensor<3xf32>
  %e1 = tensor.empty() : tensor<6x7xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x7xf32>) -> tensor<6x7xf32>
  %m1 = linalg.matmul indexing_maps = [#a, #b, #c] ins(%x, %w1 : tensor<6x5xf32>, tensor<7x5xf32>) outs(%f1 : tensor<6x7xf32>) -> tensor<6x7xf32> loc("/fc1")
  %h1 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m1, %b1 : tensor<6x7xf32>, tensor<7xf32>) outs(%e1 : tensor<6x7xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<6x7xf32> loc("/fc1")
  %r1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h1 : tensor<6x7xf32>) outs(%e1 : tensor<6x7xf32>) {
  ^bb0(%p: f32, %o: f32):
    %z = arith.constant 0.0 : f32
    %g = arith.cmpf ogt, %p, %z : f32
    %s = arith.select %g, %p, %z : f32
    linalg.yield %s : f32
  } -> tensor<6x7xf32> loc("/relu")
  %e2 = tensor.empty() : tensor<6x3xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<6x3xf32>) -> tensor<6x3xf32>
  %m2 = linalg.matmul indexing_maps = [#a, #b, #c] ins(%r1, %w2 : tensor<6x7xf32>, tensor<3x7xf32>) outs(%f2 : tensor<6x3xf32>) -> tensor<6x3xf32> loc("/fc2")
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m2, %b2 : tensor<6x3xf32>, tensor<3xf32>) outs(%e2 : tensor<6x3xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<6x3xf32> loc("/fc2")
  return %y : tensor<6x3xf32>
}
