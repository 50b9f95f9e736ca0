// RUN: flow-opt %s --flow-lower-kernels="vector-bits=256 registers=16 chunks=2" | FileCheck %s

// What is no kernel stays.
// CHECK-LABEL: func.func @other
// CHECK: tensor.empty
func.func @other() -> tensor<3xf32> {
  %0 = tensor.empty() : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK: llvm.func internal @k0.body
// CHECK-LABEL: llvm.func @k0(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) attributes {flow.kernel}
// CHECK-NOT: unrealized_conversion_cast
func.func private @k0(%x: tensor<6x5xf32>) -> tensor<6x5xf32> attributes {flow.kernel} {
  %0 = arith.negf %x : tensor<6x5xf32>
  return %0 : tensor<6x5xf32>
}
