// RUN: flow-opt %s --flow-outline-parallel --split-input-file --verify-diagnostics | FileCheck %s

// Views are made again inside, so that captured buffers do not alias.
// CHECK-LABEL: func.func @k
// CHECK: %[[N:.*]] = arith.constant 8 : index
// CHECK: call @k_chunk(%[[N]], %arg0)
// CHECK-NOT: scf.forall
// CHECK-LABEL: func.func private @k_chunk
// CHECK-SAME: (%[[C:.*]]: index, %[[X:.*]]: memref<8xi8> {llvm.noalias}) attributes {flow.parallel_body}
// CHECK: %[[V:.*]] = memref.view %[[X]]
// CHECK: memref.store %{{.*}}, %[[V]]
func.func @k(%x: memref<8xi8> {llvm.noalias}) attributes {flow.kernel} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  %v = memref.view %x[%c0][] : memref<8xi8> to memref<2xf32>
  scf.forall (%i) in (8) {
    memref.store %f, %v[%c0] : memref<2xf32>
  }
  return
}

// -----

func.func @two_counters(%x: memref<8xi8>) {
  // expected-error @+1 {{is no chunk loop: expected one counter from 0 to a constant and no results}}
  scf.forall (%i, %j) in (8, 2) {
  }
  return
}
