// One matmul + bias + relu through all phases, on two ranks that split the
// contracted dim: the sum of their products is made whole by one all-reduce.
//
// RUN: flow-opt %s --flow-legalize-pipeline | FileCheck %s --check-prefix=LEGALIZE
// RUN: flow-opt %s --flow-legalize-pipeline --flow-distribute-pipeline="mesh=tp=2 sbp=w=[S(0)]" | FileCheck %s --check-prefix=DISTRIBUTE
// RUN: flow-compile %s --mesh=tp=2 --sbp='w=[S(0)]' --emit=mlir:localize | FileCheck %s --check-prefix=LOCALIZE
// RUN: flow-compile %s --mesh=tp=2 --sbp='w=[S(0)]' --emit=mlir:kernels | FileCheck %s --check-prefix=KERNELS
// RUN: flow-compile %s --mesh=tp=2 --sbp='w=[S(0)]' --emit=mlir:schedule | FileCheck %s --check-prefix=SCHEDULE
// RUN: flow-compile %s --mesh=tp=2 --sbp='w=[S(0)]' --emit=mlir:llvm | FileCheck %s --check-prefix=LLVM
// RUN: flow-compile %s --mesh=tp=2 --sbp='w=[S(0)]' -o %t.prog
// RUN: %python -c "import numpy as np; np.savez('%t.npz', x=np.arange(35, dtype='f4').reshape(7, 5) - 16)"
// RUN: %t.prog %t.npz %t.out.npz
// RUN: %python -c "import numpy as np; y = np.load('%t.out.npz')['y']; x = np.load('%t.npz')['x']; print((y == np.maximum(x.sum(1)[:, None] / 2 + [1, -1, .5, -.5], 0)).all())" | FileCheck %s --check-prefix=RUN-IT
// RUN-IT: True

// Phase legalize: linalg on whole tensors; weights are arguments with a first value.
// LEGALIZE: func.func @main(%[[X:.*]]: tensor<7x5xf32> {flow.kind = "input", flow.name = "x"},
// LEGALIZE-SAME: %[[W:.*]]: tensor<5x4xf32> {flow.initial = @w, flow.kind = "state", flow.name = "w"},
// LEGALIZE: linalg.matmul ins(%[[X]], %[[W]] :

// Phase distribute: how each value is held is in its type, all movement in flow.boxing.
// DISTRIBUTE: %[[X:.*]] = flow.boxing %{{.*}} : !flow.dist<7x5xf32, #mesh, [B]> -> !flow.dist<7x5xf32, #mesh, [S(1)]>
// DISTRIBUTE: %[[P:.*]] = flow.compute (%[[X]] : !flow.dist<7x5xf32, #mesh, [S(1)]>, %{{.*}} : !flow.dist<5x4xf32, #mesh, [S(0)]>) -> !flow.dist<7x4xf32, #mesh, [P(sum)]>
// DISTRIBUTE: linalg.matmul
// DISTRIBUTE: flow.boxing %[[P]] : !flow.dist<7x4xf32, #mesh, [P(sum)]> -> !flow.dist<7x4xf32, #mesh, [B]>

// Phase localize: a function per rank class on its own shards: 3 rows of w, and 2.
// LOCALIZE: func.func @main.s0.c0(%{{.*}}: index {{.*}}: tensor<7x5xf32> {{.*}}: tensor<3x4xf32>
// LOCALIZE: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<7x3xf32>, tensor<3x4xf32>)
// LOCALIZE: ccl.all_reduce {{ ?}}sum %{{.*}} axes ["tp"]
// LOCALIZE: func.func @main.s0.c1(%{{.*}}: index {{.*}}: tensor<7x5xf32> {{.*}}: tensor<2x4xf32>
// LOCALIZE: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<7x2xf32>, tensor<2x4xf32>)
// LOCALIZE: ccl.all_reduce {{ ?}}sum %{{.*}} axes ["tp"]
// LOCALIZE: func.func private @main.placed

// Phase kernels: what computes is outlined; both classes share bias + relu.
// KERNELS: func.func @main.s0.c0
// KERNELS: %[[P:.*]] = call @k0(
// KERNELS: %[[H:.*]] = ccl.all_reduce {{ ?}}sum %[[P]]
// KERNELS: call @k1(%[[H]],
// KERNELS: func.func @main.s0.c1
// KERNELS: call @k2(
// KERNELS: ccl.all_reduce
// KERNELS: call @k1(
// KERNELS: func.func private @k1({{.*}}) -> tensor<7x4xf32> attributes {flow.kernel}
// KERNELS: arith.addf
// KERNELS: arith.cmpf ugt

// Phase schedule: actors, a total order per stream, offsets and waits; kernels are LLVM code.
// SCHEDULE: actor.plan @{{.*}} axes ["tp"] sizes [2] stages 1 {
// SCHEDULE: actor.class stage 0 from [0] to [1] arena_bytes
// SCHEDULE: %[[FC:.*]] = actor.kernel @k0 "fc"
// SCHEDULE: %[[AR:.*]] = actor.collective {{ ?}}all_reduce by {{ ?}}sum "fc"
// SCHEDULE: %[[RELU:.*]] = actor.kernel @k1 "bias+relu"
// SCHEDULE: actor.order {{ ?}}compute {
// SCHEDULE-NEXT: actor.fire %[[FC]] {{.*}} after [#actor.wait<io 1>]
// SCHEDULE-NEXT: actor.fire %[[RELU]] {{.*}} after [#actor.wait<comm 1>]
// SCHEDULE: actor.order {{ ?}}comm {
// SCHEDULE-NEXT: actor.fire %[[AR]] {{.*}} after [#actor.wait<compute 1>]
// SCHEDULE: llvm.func @k0(

// Phase llvm: the plan is a constant table.
// LLVM-DAG: llvm.mlir.global external constant @flow_main_executable
// LLVM-DAG: llvm.func @k0(

ml_program.global private @w(dense<0.5> : tensor<5x4xf32>) : tensor<5x4xf32>
ml_program.global private @b(dense<[1.0, -1.0, 0.5, -0.5]> : tensor<4xf32>) : tensor<4xf32>
func.func @main(%x: tensor<7x5xf32> {flow.kind = "input", flow.name = "x"}) -> (tensor<7x4xf32> {flow.kind = "output", flow.name = "y"}) {
  %w = ml_program.global_load_const @w : tensor<5x4xf32>
  %b = ml_program.global_load_const @b : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<7x4xf32>) -> tensor<7x4xf32>
  %h = linalg.matmul ins(%x, %w : tensor<7x5xf32>, tensor<5x4xf32>) outs(%f : tensor<7x4xf32>) -> tensor<7x4xf32> loc("fc")
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%h, %b : tensor<7x4xf32>, tensor<4xf32>) outs(%e : tensor<7x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<7x4xf32> loc("bias")
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<7x4xf32>) outs(%e : tensor<7x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %c = arith.cmpf ugt, %p, %zero : f32
    %r = arith.select %c, %p, %zero : f32
    linalg.yield %r : f32
  } -> tensor<7x4xf32> loc("relu")
  return %y : tensor<7x4xf32>
}
