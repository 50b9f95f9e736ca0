// RUN: flow-opt %s --flow-localize --split-input-file --verify-diagnostics

#m = #flow.mesh<"m", ["dp" = 2]>
#m1 = #flow.mesh<"m", ["dp" = 2], stage = 1>
!r0 = !flow.dist<3xf32, #m, [B]>
!r1 = !flow.dist<3xf32, #m1, [B]>
// expected-error @below {{result 0 is on stage 1 but the argument that it is tied to is not}}
func.func @tied_across_stages(%x: !r0) -> (!r1 {flow.tied = 0 : i64}) {
  %y = flow.boxing %x : !r0 -> !r1
  return %y : !r1
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
!b = !flow.dist<3xf32, #m, [B]>
// expected-error @below {{symbol 'f.s0.c0' exists already}}
func.func @f(%x: !b) -> !b {
  return %x : !b
}
func.func private @f.s0.c0()

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
!p = !flow.dist<3xf32, #m, [P(sum)]>
!b = !flow.dist<3xf32, #m, [B]>
func.func @illegal_signature(%x: !p) -> !p {
  // expected-error @below {{}}
  %y = flow.compute (%x : !p) -> !p {
  ^bb0(%a: tensor<3xf32>):
    %e = tensor.empty() : tensor<3xf32>
    %0 = linalg.exp ins(%a : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    flow.yield %0 : tensor<3xf32>
  }
  return %y : !p
}
