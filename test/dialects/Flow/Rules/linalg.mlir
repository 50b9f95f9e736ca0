// RUN: flow-opt --flow-print-signatures %s | %python %S/Inputs/rows.py | FileCheck %s
// Rows follow from maps, iterator types and bodies. Destinations are operands.

// A reduction factor gives a partial result, whose destination must be a part too.
// CHECK:      linalg.matmul fc1 %arg0 %arg1 %arg2 -> %0
// CHECK-NEXT:   B B B -> B
// CHECK-NEXT:   S(0) B S(0) -> S(0)
// CHECK-NEXT:   B S(1) S(1) -> S(1)
// CHECK-NEXT:   S(1) S(0) P(sum) -> P(sum)
// CHECK-NEXT:   P(sum) B P(sum) -> P(sum)
// CHECK-NEXT:   B P(sum) P(sum) -> P(sum)
// CHECK-NEXT:   B B P(max) -> P(max)
// CHECK-NEXT:   B B P(min) -> P(min)
// CHECK-NOT: P(sum) P(sum)
func.func @matmul(%x: tensor<7x11xf32>, %w: tensor<11x13xf32>, %f: tensor<7x13xf32>) -> tensor<7x13xf32> {
  %h = linalg.matmul ins(%x, %w : tensor<7x11xf32>, tensor<11x13xf32>) outs(%f : tensor<7x13xf32>) -> tensor<7x13xf32> loc("fc1")
  return %h : tensor<7x13xf32>
}

// P + constant is refused, P(max) passes a monotone body; the compare and select
// of its operands is a maximum.
// CHECK:      linalg.generic relu
// CHECK-NEXT:   B B -> B
// CHECK-NEXT:   S(0) S(0) -> S(0)
// CHECK-NEXT:   S(1) S(1) -> S(1)
// CHECK-NEXT:   P(max) P(max) -> P(max)
// CHECK-NEXT:   P(min) P(min) -> P(min)
func.func @relu(%h: tensor<7x13xf32>) -> tensor<7x13xf32> {
  %e = tensor.empty() : tensor<7x13xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,j)>], iterator_types = ["parallel","parallel"]} ins(%h : tensor<7x13xf32>) outs(%e : tensor<7x13xf32>) {
  ^bb0(%a: f32, %o: f32):
    %zero = arith.constant 0.0 : f32
    %c = arith.cmpf ogt, %a, %zero : f32
    %s = arith.select %c, %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<7x13xf32> loc("relu")
  return %r : tensor<7x13xf32>
}

// The gradient of relu is linear in the cotangent under the mask.
// CHECK:      linalg.generic relu_grad
// CHECK:        P(sum) B P(sum) -> P(sum)
// CHECK-NOT:    B P(sum)
func.func @relu_grad(%g: tensor<5xf32>, %h: tensor<5xf32>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i)->(i)>, affine_map<(i)->(i)>, affine_map<(i)->(i)>], iterator_types = ["parallel"]} ins(%g, %h : tensor<5xf32>, tensor<5xf32>) outs(%e : tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %zero = arith.constant 0.0 : f32
    %c = arith.cmpf ogt, %b, %zero : f32
    %s = arith.select %c, %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<5xf32> loc("relu_grad")
  return %r : tensor<5xf32>
}

// Windows that do not overlap split in units of the stride.
// CHECK:      linalg.pooling_nchw_max pool
// CHECK-NEXT:   B B B -> B
// CHECK-NEXT:   S(0) B S(0) -> S(0)
// CHECK-NEXT:   S(1) B S(1) -> S(1)
// CHECK-NEXT:   S(2, unit = 2) B S(2) -> S(2)
// CHECK-NEXT:   S(2) B S(2) -> S(2) aligned
func.func @pool(%x: tensor<3x4x8x6xf32>, %f: tensor<3x4x4x3xf32>) -> tensor<3x4x4x3xf32> {
  %w = tensor.empty() : tensor<2x2xf32>
  %p = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<3x4x8x6xf32>, tensor<2x2xf32>) outs(%f : tensor<3x4x4x3xf32>) -> tensor<3x4x4x3xf32> loc("pool")
  return %p : tensor<3x4x4x3xf32>
}

// Overlapping windows: batch, output and input channels.
// CHECK:      linalg.conv_2d_nchw_fchw conv
// CHECK-NEXT:   B B B -> B
// CHECK-NEXT:   S(0) B S(0) -> S(0)
// CHECK-NEXT:   B S(0) S(1) -> S(1)
// CHECK-NEXT:   S(1) S(1) P(sum) -> P(sum)
// CHECK-NEXT:   P(sum) B P(sum) -> P(sum)
func.func @conv(%x: tensor<3x4x8x6xf32>, %k: tensor<5x4x3x3xf32>, %f: tensor<3x5x6x4xf32>) -> tensor<3x5x6x4xf32> {
  %c = linalg.conv_2d_nchw_fchw ins(%x, %k : tensor<3x4x8x6xf32>, tensor<5x4x3x3xf32>) outs(%f : tensor<3x5x6x4xf32>) -> tensor<3x5x6x4xf32> loc("conv")
  return %c : tensor<3x5x6x4xf32>
}

// The adjoint of windows that do not overlap, in scatter form: a split of its
// reduction loop writes disjoint runs.
// CHECK:      linalg.generic scatter
// CHECK-NEXT:   B B B -> B
// CHECK-NEXT:   S(0) B S(0, unit = 3) -> S(0, unit = 3)
// CHECK-NEXT:   S(0) B S(0) -> S(0) aligned
func.func @scatter(%g: tensor<4xf32>, %f: tensor<12xf32>) -> tensor<12xf32> {
  %w = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(o,k)->(o)>, affine_map<(o,k)->(k)>, affine_map<(o,k)->(o*3+k)>], iterator_types = ["reduction","reduction"]} ins(%g, %w : tensor<4xf32>, tensor<3xf32>) outs(%f : tensor<12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<12xf32> loc("scatter")
  return %r : tensor<12xf32>
}

// A body that folds by no monoid (the argument of a maximum) keeps its reduced dim whole.
// CHECK:      linalg.generic argmax
// CHECK-NEXT:   B B B -> B B
// CHECK-NEXT:   S(0) S(0) S(0) -> S(0) S(0)
// CHECK-NOT:    S(1)
func.func @argmax(%x: tensor<5x7xf32>, %v: tensor<5xf32>, %i: tensor<5xi64>) -> tensor<5xi64> {
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i)>, affine_map<(i,j)->(i)>], iterator_types = ["parallel","reduction"]} ins(%x : tensor<5x7xf32>) outs(%v, %i : tensor<5xf32>, tensor<5xi64>) {
  ^bb0(%a: f32, %m: f32, %n: i64):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %c = arith.cmpf ogt, %a, %m : f32
    %s = arith.select %c, %a, %m : f32
    %t = arith.select %c, %k, %n : i64
    linalg.yield %s, %t : f32, i64
  } -> (tensor<5xf32>, tensor<5xi64>) loc("argmax")
  return %r#1 : tensor<5xi64>
}

// A table that the body reads follows the operands; it is whole or a part.
// CHECK:      linalg.generic gather %arg1 %0 %arg0 -> %1
// CHECK-NEXT:   B B B -> B
// CHECK-NEXT:   S(0) S(0) B -> S(0)
// CHECK-NEXT:   B S(1) B -> S(1)
// CHECK-NEXT:   B P(sum) P(sum) -> P(sum)
func.func @gather(%table: tensor<12x4xf32>, %ids: tensor<7xi64>) -> tensor<7x4xf32> {
  %e = tensor.empty() : tensor<7x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i,j)->(i)>, affine_map<(i,j)->(i,j)>], iterator_types = ["parallel","parallel"]} ins(%ids : tensor<7xi64>) outs(%e : tensor<7x4xf32>) {
  ^bb0(%v: i64, %o: f32):
    %k = arith.index_cast %v : i64 to index
    %j = linalg.index 1 : index
    %q = tensor.extract %table[%k, %j] : tensor<12x4xf32>
    linalg.yield %q : f32
  } -> tensor<7x4xf32> loc("gather")
  return %r : tensor<7x4xf32>
}
