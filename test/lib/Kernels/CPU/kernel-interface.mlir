// RUN: flow-opt %s --flow-parallel-to-runtime --flow-kernel-interface="vector-bits=512" | FileCheck %s

// CHECK: llvm.func @flow_rt_parallel(!llvm.ptr, !llvm.ptr, i64)
// CHECK-LABEL: llvm.func internal @k_chunk(
// CHECK-SAME: prefer_vector_width = "512"
llvm.func @k_chunk(%c: i64, %x: !llvm.ptr) attributes {flow.parallel_body} {
  llvm.return
}

// CHECK-LABEL: llvm.func internal @k.body
// CHECK: %[[A:.*]] = llvm.alloca
// CHECK: llvm.store %{{.*}}, %{{.*}} : !llvm.ptr, !llvm.ptr
// CHECK: %[[F:.*]] = llvm.mlir.addressof @k_chunk_entry
// CHECK: llvm.call @flow_rt_parallel(%[[F]], %[[A]], %{{.*}})
// CHECK-LABEL: llvm.func @k(
// CHECK-SAME: %[[BUFFERS:.*]]: !llvm.ptr, %[[COORDS:.*]]: !llvm.ptr) attributes {flow.kernel, flow.scratch_bytes = 64 : i64}
// CHECK: llvm.getelementptr %[[COORDS]][0]
// CHECK: llvm.getelementptr %[[BUFFERS]][0]
// CHECK: llvm.getelementptr %[[BUFFERS]][1]
// CHECK: llvm.call @k.body
llvm.func @k(%c: i64, %x: !llvm.ptr, %s: !llvm.ptr) attributes {flow.kernel, flow.scratch_bytes = 64 : i64} {
  %n = llvm.mlir.constant(8 : i64) : i64
  llvm.call @k_chunk(%n, %x) : (i64, !llvm.ptr) -> ()
  llvm.return
}
