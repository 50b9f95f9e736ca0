// RUN: flow-opt %s --flow-verify-distribution --split-input-file --verify-diagnostics
#m = #flow.mesh<"m", ["dp" = 2]>
!s = !flow.dist<5x4xf32, #m, [S(0)]>
!b = !flow.dist<5x4xf32, #m, [B]>
!p = !flow.dist<5x4xf32, #m, [P(sum)]>

func.func @legal(%x: !s) -> !b {
  %0 = flow.compute (%x : !s) -> !s {
  ^bb0(%a: tensor<5x4xf32>):
    %e = tensor.empty() : tensor<5x4xf32>
    %r = linalg.exp ins(%a : tensor<5x4xf32>) outs(%e : tensor<5x4xf32>) -> tensor<5x4xf32>
    flow.yield %r : tensor<5x4xf32>
  }
  %1 = flow.boxing %0 : !s -> !b
  return %1 : !b
}

// -----
#m = #flow.mesh<"m", ["dp" = 2]>
!p = !flow.dist<5x4xf32, #m, [P(sum)]>
func.func @not_linear(%x: !p) -> !p {
  // expected-error @below {{has no legal signature on axis 'dp': [P(sum)] -> [P(sum)]; 'linalg.exp': the body is not linear in its partial operands}}
  %0 = flow.compute (%x : !p) -> !p {
  ^bb0(%a: tensor<5x4xf32>):
    %e = tensor.empty() : tensor<5x4xf32>
    %r = linalg.exp ins(%a : tensor<5x4xf32>) outs(%e : tensor<5x4xf32>) -> tensor<5x4xf32>
    flow.yield %r : tensor<5x4xf32>
  }
  return %0 : !p
}

// -----
// The result of a split reduction is a part, not the whole.
#m = #flow.mesh<"m", ["dp" = 2]>
!s = !flow.dist<5x4xf32, #m, [S(1)]>
!w = !flow.dist<4x3xf32, #m, [S(0)]>
!b = !flow.dist<5x3xf32, #m, [B]>
func.func @part_taken_for_whole(%x: !s, %y: !w) -> !b {
  // expected-error @below {{result is P(sum), its type says B}}
  %0 = flow.compute (%x : !s, %y : !w) -> !b {
  ^bb0(%a: tensor<5x4xf32>, %c: tensor<4x3xf32>):
    %z = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<5x3xf32>
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
    %r = linalg.matmul ins(%a, %c : tensor<5x4xf32>, tensor<4x3xf32>) outs(%f : tensor<5x3xf32>) -> tensor<5x3xf32>
    flow.yield %r : tensor<5x3xf32>
  }
  return %0 : !b
}

// -----
// An accumulator that every rank would add again.
#m = #flow.mesh<"m", ["dp" = 2]>
!s = !flow.dist<5xf32, #m, [S(0)]>
!p = !flow.dist<f32, #m, [P(sum)]>
func.func @init_of_one(%x: !s) -> !p {
  // expected-error @below {{every rank would add the destination again}}
  %0 = flow.compute (%x : !s) -> !p {
  ^bb0(%a: tensor<5xf32>):
    %z = arith.constant 1.0 : f32
    %e = tensor.empty() : tensor<f32>
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
    %r = linalg.reduce { arith.addf } ins(%a : tensor<5xf32>) outs(%f : tensor<f32>) dimensions = [0]
    flow.yield %r : tensor<f32>
  }
  return %0 : !p
}

// -----
// [4, 4, 4] -> [4, 16] with S(2) taken for S(1).
#m = #flow.mesh<"m", ["dp" = 2]>
!s = !flow.dist<4x4x4xf32, #m, [S(2)]>
!r = !flow.dist<4x16xf32, #m, [S(1)]>
func.func @regroup(%x: !s) -> !r {
  // expected-error @below {{S(2) splits a dim that another one encloses}}
  %0 = flow.compute (%x : !s) -> !r {
  ^bb0(%a: tensor<4x4x4xf32>):
    %r = tensor.collapse_shape %a [[0], [1, 2]] : tensor<4x4x4xf32> into tensor<4x16xf32>
    flow.yield %r : tensor<4x16xf32>
  }
  return %0 : !r
}

// -----
#m = #flow.mesh<"m", ["dp" = 2]>
!s = !flow.dist<5x4xf32, #m, [S(0)]>
func.func @select(%c: i1, %x: !s, %y: !s) -> !s {
  // expected-error @below {{touches a distributed value, but only flow.compute computes and only flow.boxing moves data}}
  %0 = arith.select %c, %x, %y : !s
  return %0 : !s
}

// -----
#m = #flow.mesh<"m", ["dp" = 2]>
!s = !flow.dist<5x4xf32, #m, [S(0)]>
func.func @tensor(%x: !s) -> !s {
  // expected-error @below {{works on a tensor outside of flow.compute}}
  %e = tensor.empty() : tensor<5x4xf32>
  return %x : !s
}

// -----
#m = #flow.mesh<"m", ["dp" = 2]>
!s = !flow.dist<5x4xf32, #m, [S(0)]>
!b = !flow.dist<5x4xf32, #m, [B]>
// expected-error @below {{state 'w' comes back as '!flow.dist<5x4xf32, #flow.mesh<"m", ["dp" = 2]>, [B]>', expected '!flow.dist<5x4xf32, #flow.mesh<"m", ["dp" = 2]>, [S(0)]>'}}
func.func @step(%w: !s {flow.name = "w", flow.initial = @w}) -> (!b {flow.tied = 0 : i64}) {
  %0 = flow.boxing %w : !s -> !b
  return %0 : !b
}

// -----
#m = #flow.mesh<"m", ["dp" = 2]>
!s = !flow.dist<5x4xf32, #m, [S(0)]>
!b = !flow.dist<5x4xf32, #m, [B]>
func.func @step(%w: !s {flow.name = "w", flow.initial = @w}) {
  return
}
// expected-error @below {{state 'w' is held as '!flow.dist<5x4xf32, #flow.mesh<"m", ["dp" = 2]>, [B]>', another function holds it as '!flow.dist<5x4xf32, #flow.mesh<"m", ["dp" = 2]>, [S(0)]>'}}
func.func @eval(%w: !b {flow.name = "w", flow.initial = @w}) {
  return
}
