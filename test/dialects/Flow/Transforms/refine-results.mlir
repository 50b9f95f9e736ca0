// RUN: flow-opt %s --pass-pipeline='builtin.module(func.func(flow-refine-results))' | FileCheck %s

// CHECK-LABEL: func @known_size_is_returned(
// CHECK-SAME: %[[X:.*]]: tensor<3x5xf32>) -> tensor<3x5xf32>
// CHECK-NEXT: return %[[X]] : tensor<3x5xf32>
func.func @known_size_is_returned(%x: tensor<3x5xf32>) -> tensor<?x5xf32> {
  %y = tensor.cast %x : tensor<3x5xf32> to tensor<?x5xf32>
  return %y : tensor<?x5xf32>
}

// CHECK-LABEL: func @open_size_stays(
// CHECK-SAME: -> tensor<?x5xf32>
func.func @open_size_stays(%x: tensor<?x5xf32>) -> tensor<?x5xf32> {
  return %x : tensor<?x5xf32>
}
