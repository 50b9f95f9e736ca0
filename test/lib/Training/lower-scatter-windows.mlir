// RUN: flow-opt %s --flow-lower-scatter-windows --split-input-file | FileCheck %s

// Stride 1: the cotangent, padded, is the image of a convolution with the reversed weights.
// CHECK: #[[REVERSE:.*]] = affine_map<(d0) -> (-d0 + 2)>
// CHECK: #[[IMAGE:.*]] = affine_map<(d0, d1) -> (d0 + d1)>
// CHECK-LABEL: func @stride_one_gathers(
// CHECK-SAME: %[[DY:.*]]: tensor<5xf32>, %[[W:.*]]: tensor<3xf32>
// CHECK: %[[PAD:.*]] = tensor.pad %[[DY]] low[2] high[2]
// CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#[[REVERSE]], {{.*}} ins(%[[W]] : tensor<3xf32>)
// CHECK: linalg.generic {indexing_maps = [#[[IMAGE]], {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[PAD]], %[[R]] :
#o = affine_map<(o, k) -> (o)>
#k = affine_map<(o, k) -> (k)>
#window = affine_map<(o, k) -> (o + k)>
func.func @stride_one_gathers(%dy: tensor<5xf32>, %w: tensor<3xf32>) -> tensor<7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %r = linalg.generic {indexing_maps = [#o, #k, #window], iterator_types = ["reduction", "reduction"]}
      ins(%dy, %w : tensor<5xf32>, tensor<3xf32>) outs(%f : tensor<7xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<7xf32>
  return %r : tensor<7xf32>
}

// -----

// No overlap: one value per position of each window, no reduction left; the gap and the tail are zero.
// CHECK-LABEL: func @separate_windows_are_dense(
// CHECK: %[[V:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} {{.*}} outs(%{{.*}} : tensor<2x2xf32>)
// CHECK-NOT: arith.addf
// CHECK: %[[G:.*]] = tensor.insert_slice %[[V]] into %{{.*}}[0, 0] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<2x3xf32>
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[G]] {{\[\[}}0, 1]] : tensor<2x3xf32> into tensor<6xf32>
// CHECK: tensor.pad %[[C]] low[0] high[1]
#o = affine_map<(o, k) -> (o)>
#k = affine_map<(o, k) -> (k)>
#window = affine_map<(o, k) -> (o * 3 + k)>
func.func @separate_windows_are_dense(%dy: tensor<2xf32>, %w: tensor<2xf32>) -> tensor<7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %r = linalg.generic {indexing_maps = [#o, #k, #window], iterator_types = ["reduction", "reduction"]}
      ins(%dy, %w : tensor<2xf32>, tensor<2xf32>) outs(%f : tensor<7xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<7xf32>
  return %r : tensor<7xf32>
}

// -----

// Stride 2, window 3: even elements get two of the weights, odd ones the middle one. The running
// gradient is what they add to.
// CHECK-LABEL: func @overlap_has_phases(
// CHECK-SAME: %[[ACC:.*]]: tensor<8xf32>
// CHECK: %[[EVEN:.*]] = tensor.extract_slice %[[ACC]][0] [4] [2] : tensor<8xf32> to tensor<4xf32>
// CHECK: %[[E:.*]] = linalg.generic {{.*}} outs(%[[EVEN]] : tensor<4xf32>)
// CHECK: %[[A:.*]] = tensor.insert_slice %[[E]] into %[[ACC]][0] [4] [2]
// CHECK: %[[ODD:.*]] = tensor.extract_slice %[[A]][1] [4] [2]
// CHECK: %[[O:.*]] = linalg.generic {{.*}} outs(%[[ODD]] : tensor<4xf32>)
// CHECK: tensor.insert_slice %[[O]] into %[[A]][1] [4] [2]
#o = affine_map<(o, k) -> (o)>
#k = affine_map<(o, k) -> (k)>
#window = affine_map<(o, k) -> (o * 2 + k)>
func.func @overlap_has_phases(%acc: tensor<8xf32>, %dy: tensor<3xf32>, %w: tensor<3xf32>) -> tensor<8xf32> {
  %r = linalg.generic {indexing_maps = [#o, #k, #window], iterator_types = ["reduction", "reduction"]}
      ins(%dy, %w : tensor<3xf32>, tensor<3xf32>) outs(%acc : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %s0: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %s0, %m : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// Division must not meet padded zeros: left as it is.
// CHECK-LABEL: func @division_stays(
// CHECK-NOT: tensor.pad
// CHECK: iterator_types = ["reduction", "reduction"]
#o = affine_map<(o, k) -> (o)>
#k = affine_map<(o, k) -> (k)>
#window = affine_map<(o, k) -> (o + k)>
func.func @division_stays(%dy: tensor<5xf32>, %y: tensor<5xf32>, %w: tensor<3xf32>, %acc: tensor<7xf32>) -> tensor<7xf32> {
  %r = linalg.generic {indexing_maps = [#o, #o, #k, #window], iterator_types = ["reduction", "reduction"]}
      ins(%dy, %y, %w : tensor<5xf32>, tensor<5xf32>, tensor<3xf32>) outs(%acc : tensor<7xf32>) {
  ^bb0(%a: f32, %d: f32, %b: f32, %s0: f32):
    %q = arith.divf %a, %d : f32
    %m = arith.mulf %q, %b : f32
    %s = arith.addf %s0, %m : f32
    linalg.yield %s : f32
  } -> tensor<7xf32>
  return %r : tensor<7xf32>
}

// -----

// A forward convolution is no scatter.
// CHECK-LABEL: func @convolution_stays(
// CHECK: linalg.conv_1d
func.func @convolution_stays(%x: tensor<7xf32>, %w: tensor<3xf32>, %y: tensor<5xf32>) -> tensor<5xf32> {
  %r = linalg.conv_1d ins(%x, %w : tensor<7xf32>, tensor<3xf32>) outs(%y : tensor<5xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}
