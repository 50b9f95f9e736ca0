// RUN: flow-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func @collectives
func.func @collectives(%x: tensor<6x3xf32>, %blocks: tensor<4x6x3xf32>) -> tensor<6x3xf32> {
  %block = tensor.empty() : tensor<6x3xf32>
  %all = tensor.empty() : tensor<4x6x3xf32>
  // CHECK: ccl.all_reduce sum %{{.*}} into %{{.*}} axes ["dp", "tp"] : tensor<6x3xf32> into tensor<6x3xf32>
  %0 = ccl.all_reduce sum %x into %block axes ["dp", "tp"] : tensor<6x3xf32> into tensor<6x3xf32>
  // CHECK: ccl.all_gather %{{.*}} into %{{.*}} axes ["tp"] {dim = 1 : i64, global = 10 : i64} : tensor<6x3xf32> into tensor<4x6x3xf32>
  %1 = ccl.all_gather %0 into %all axes ["tp"] {global = 10 : i64, dim = 1 : i64} : tensor<6x3xf32> into tensor<4x6x3xf32>
  // CHECK: ccl.all_to_all
  %2 = ccl.all_to_all %1 into %all axes ["tp"] : tensor<4x6x3xf32> into tensor<4x6x3xf32>
  // CHECK: ccl.reduce_scatter max
  %3 = ccl.reduce_scatter max %2 into %block axes ["tp"] : tensor<4x6x3xf32> into tensor<6x3xf32>
  // CHECK: ccl.send %{{.*}} to stage 1 channel 0 : tensor<6x3xf32>
  ccl.send %3 to stage 1 channel 0 : tensor<6x3xf32>
  // CHECK: ccl.recv %{{.*}} from stage 1 channel 1 : tensor<6x3xf32>
  %4 = ccl.recv %block from stage 1 channel 1 : tensor<6x3xf32>
  return %4 : tensor<6x3xf32>
}

// Collectives have an order: nothing removes or merges them.
// RUN: flow-opt %s --canonicalize --cse | FileCheck %s --check-prefix=KEPT
// KEPT-LABEL: func @unused
// KEPT-COUNT-2: ccl.all_reduce
func.func @unused(%x: tensor<6x3xf32>) {
  %e = tensor.empty() : tensor<6x3xf32>
  %0 = ccl.all_reduce sum %x into %e axes ["dp"] : tensor<6x3xf32> into tensor<6x3xf32>
  %1 = ccl.all_reduce sum %x into %e axes ["dp"] : tensor<6x3xf32> into tensor<6x3xf32>
  return
}
