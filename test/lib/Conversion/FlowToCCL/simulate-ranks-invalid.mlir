// RUN: flow-opt %s --flow-simulate-ranks --split-input-file --verify-diagnostics

#m = #flow.mesh<"m", ["dp" = 2]>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0, @f.s0.c1]]}}} {
  // expected-error @below {{ranks of program 'f' wait for ever}}
  func.func @f.s0.c0(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [1]}, flow.mesh = #m} {
    %x = tensor.empty() : tensor<4xf32>
    // expected-note @below {{stage 0, coordinates [0] waits at ccl.all_reduce}}
    %r = ccl.all_reduce sum %x into %x axes ["dp"] : tensor<4xf32> into tensor<4xf32>
    return
  }
  func.func @f.s0.c1(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [1], hi = [2]}, flow.mesh = #m} {
    return
  }
  func.func private @f.placed()
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0, @f.s0.c1]]}}} {
  func.func @f.s0.c0(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [1]}, flow.mesh = #m} {
    %x = tensor.empty() : tensor<4xf32>
    // expected-note @below {{see ccl.all_reduce}}
    %r = ccl.all_reduce sum %x into %x axes ["dp"] : tensor<4xf32> into tensor<4xf32>
    return
  }
  func.func @f.s0.c1(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [1], hi = [2]}, flow.mesh = #m} {
    %x = tensor.empty() : tensor<4xf32>
    // expected-error @below {{is not what another member of its group issues}}
    %r = ccl.all_reduce max %x into %x axes ["dp"] : tensor<4xf32> into tensor<4xf32>
    return
  }
  func.func private @f.placed()
}
