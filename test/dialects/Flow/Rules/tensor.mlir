// RUN: flow-opt --flow-print-signatures %s | %python %S/Inputs/rows.py | FileCheck %s

// A collapsed dim is split in units of what lies inside; an inner dim is not split.
// CHECK:      tensor.collapse_shape flatten
// CHECK-NEXT:   B -> B
// CHECK-NEXT:   S(0) -> S(0)
// CHECK-NEXT:   S(1) -> S(1, unit = 5)
// CHECK-NEXT:   S(1) -> S(1) aligned
// CHECK-NEXT:   P(sum) -> P(sum)
// CHECK-NEXT:   P(max) -> P(max)
// CHECK-NEXT:   P(min) -> P(min)
// CHECK:      tensor.expand_shape heads
// CHECK-NEXT:   B -> B
// CHECK-NEXT:   S(0) -> S(0)
// CHECK-NEXT:   S(1, unit = 5) -> S(1)
// CHECK-NEXT:   S(1) -> S(1) aligned
func.func @reshape(%x: tensor<3x7x5xf32>) -> tensor<3x7x5xf32> {
  %c = tensor.collapse_shape %x [[0], [1, 2]] : tensor<3x7x5xf32> into tensor<3x35xf32> loc("flatten")
  %e = tensor.expand_shape %c [[0], [1, 2]] output_shape [3, 7, 5] : tensor<3x35xf32> into tensor<3x7x5xf32> loc("heads")
  return %e : tensor<3x7x5xf32>
}

// Zero padding of a sum is neutral, of a maximum idempotent; only unpadded dims split.
// CHECK:      tensor.pad pad
// CHECK-NEXT:   B -> B
// CHECK-NEXT:   S(0) -> S(0)
// CHECK-NEXT:   P(sum) -> P(sum)
// CHECK-NEXT:   P(max) -> P(max)
// CHECK:      tensor.pad ones
// CHECK-NOT:    P(sum)
// CHECK:        P(max) -> P(max)
func.func @pad(%x: tensor<3x7xf32>) -> (tensor<3x9xf32>, tensor<3x9xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %p = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<3x7xf32> to tensor<3x9xf32> loc("pad")
  %q = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f32
  } : tensor<3x7xf32> to tensor<3x9xf32> loc("ones")
  return %p, %q : tensor<3x9xf32>, tensor<3x9xf32>
}

// CHECK:      tensor.concat concat
// CHECK-NEXT:   B B -> B
// CHECK-NEXT:   S(1) S(1) -> S(1)
// CHECK-NEXT:   P(sum) P(sum) -> P(sum)
// CHECK-NEXT:   P(max) B -> P(max)
// CHECK-NEXT:   B P(max) -> P(max)
// CHECK-NEXT:   P(max) P(max) -> P(max)
func.func @concat(%x: tensor<3x7xf32>, %y: tensor<2x7xf32>) -> tensor<5x7xf32> {
  %c = tensor.concat dim(0) %x, %y : (tensor<3x7xf32>, tensor<2x7xf32>) -> tensor<5x7xf32> loc("concat")
  return %c : tensor<5x7xf32>
}

// The micro-batch slice of a loop: dim 0 is dropped, the batch dim passes.
// CHECK:      tensor.extract_slice micro %arg0 %arg1 -> %extracted_slice
// CHECK-NEXT:   B B -> B
// CHECK-NEXT:   S(1) B -> S(0)
// CHECK-NEXT:   S(2) B -> S(1)
// CHECK-NEXT:   P(sum) B -> P(sum)
func.func @micro(%x: tensor<4x3x7xf32>, %m: index) -> tensor<3x7xf32> {
  %s = tensor.extract_slice %x[%m, 0, 0] [1, 3, 7] [1, 1, 1] : tensor<4x3x7xf32> to tensor<3x7xf32> loc("micro")
  return %s : tensor<3x7xf32>
}

// CHECK:      linalg.softmax softmax
// CHECK-NEXT:   B B -> B
// CHECK-NEXT:   S(0) S(0) -> S(0)
// CHECK-NOT:    ->
func.func @softmax(%x: tensor<3x7xf32>) -> tensor<3x7xf32> {
  %e = tensor.empty() : tensor<3x7xf32>
  %s = linalg.softmax dimension(1) ins(%x : tensor<3x7xf32>) outs(%e : tensor<3x7xf32>) -> tensor<3x7xf32> loc("softmax")
  return %s : tensor<3x7xf32>
}
