// RUN: flow-opt %s --flow-bufferize-kernels --split-input-file --verify-diagnostics | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @sum
// CHECK-SAME: (%[[C:.*]]: index, %[[X:.*]]: memref<3x5xf32> {llvm.noalias}, %[[S:.*]]: memref<f32> {llvm.noalias}, %[[O:.*]]: memref<3x5xf32> {llvm.noalias})
// CHECK: %[[T:.*]] = bufferization.to_tensor %[[X]] restrict
// CHECK: memref.load %[[S]][]
// CHECK: linalg.generic
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[O]]
func.func @sum(%c: index, %x: tensor<3x5xf32>, %s: tensor<f32>) -> tensor<3x5xf32> attributes {flow.kernel} {
  %e = tensor.empty() : tensor<3x5xf32>
  %v = tensor.extract %s[] : tensor<f32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%p: f32, %q: f32):
    %r = arith.mulf %p, %v : f32
    linalg.yield %r : f32
  } -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// An in-place pair may be one buffer.
// CHECK-LABEL: func.func @inplace
// CHECK-SAME: (%{{.*}}: memref<4xf32>, %{{.*}}: memref<4xf32> {flow.inplace = 0 : i64})
func.func @inplace(%x: tensor<4xf32>) -> (tensor<4xf32> {flow.inplace = 0 : i64}) attributes {flow.kernel} {
  %0 = arith.negf %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Named ops and softmax become generics; each softmax step has an init of its own.
// CHECK-LABEL: func.func @named
// CHECK-NOT: linalg.matmul
// CHECK-NOT: linalg.softmax
// CHECK-COUNT-5: linalg.generic
func.func @named(%x: tensor<3x5xf32>, %w: tensor<5x4xf32>) -> tensor<3x4xf32> attributes {flow.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  %m = linalg.matmul ins(%x, %w : tensor<3x5xf32>, tensor<5x4xf32>) outs(%f : tensor<3x4xf32>) -> tensor<3x4xf32>
  %s = linalg.softmax dimension(0) ins(%m : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %s : tensor<3x4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {flow.kernel} {
  return %x : tensor<4xf32>
}
// expected-error @+1 {{still calls kernels on tensors: schedule it first, or give drop-callers}}
func.func @caller(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @dynamic(%x: tensor<?xf32>, %n: index) -> tensor<4xf32> attributes {flow.kernel} {
  // expected-error @+1 {{has a tensor of dynamic shape in a kernel; shapes must be static}}
  %0 = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
  %1 = tensor.cast %0 : tensor<?xf32> to tensor<4xf32>
  return %1 : tensor<4xf32>
}
