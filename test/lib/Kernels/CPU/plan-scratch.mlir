// RUN: flow-opt %s --pass-pipeline='builtin.module(func.func(flow-plan-kernel-scratch))' | FileCheck %s

// CHECK-LABEL: func.func @two
// CHECK-SAME: %[[S:[a-z0-9]*]]: memref<192xi8> {llvm.noalias})
// CHECK-SAME: flow.scratch_bytes = 192 : i64
// CHECK: memref.view %[[S]][%{{.*}}][] : memref<192xi8> to memref<30xf32>
// CHECK: %[[B:.*]] = arith.constant 128 : index
// CHECK: memref.view %[[S]][%[[B]]][] : memref<192xi8> to memref<5xf64>
func.func @two(%x: memref<3xf32>) attributes {flow.kernel} {
  %i = arith.constant 0 : index
  %v = arith.constant 1.0 : f32
  %w = arith.constant 1.0 : f64
  %0 = memref.alloc() {flow.scratch} : memref<30xf32>
  %1 = memref.alloc() {flow.scratch} : memref<5xf64>
  %unused = memref.alloc() {flow.scratch} : memref<7xf64>
  memref.store %v, %0[%i] : memref<30xf32>
  memref.store %w, %1[%i] : memref<5xf64>
  return
}

// CHECK-LABEL: func.func @none
// CHECK-SAME: (%{{.*}}: memref<3xf32>) attributes {flow.kernel}
func.func @none(%x: memref<3xf32>) attributes {flow.kernel} {
  return
}
