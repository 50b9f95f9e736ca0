// RUN: flow-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{split unit must be positive, got 0}}
func.func private @unit(tensor<4xf32>) attributes {s = #flow.sbp<S(0, unit = 0)>}

// -----

// expected-error @+1 {{split dim must not be negative, got -1}}
func.func private @dim(tensor<4xf32>) attributes {s = #flow.sbp<S(-1)>}

// -----

// expected-error @+1 {{expected S(dim), S(dim, unit = n), B or P(sum|max|min|prod)}}
func.func private @letter(tensor<4xf32>) attributes {s = #flow.sbp<R>}

// -----

// expected-error @+1 {{axis name 'dp' occurs twice}}
func.func private @axis_twice() attributes {m = #flow.mesh<"m", ["dp" = 2, "dp" = 3]>}

// -----

// expected-error @+1 {{axis 'tp' must have a positive size, got 0}}
func.func private @axis_size() attributes {m = #flow.mesh<"m", ["tp" = 0]>}

// -----

// expected-error @+1 {{stage must not be negative, got -1}}
func.func private @stage() attributes {m = #flow.mesh<"m", ["tp" = 2], stage = -1>}

// -----

// expected-error @+1 {{expected 80 bytes for 'tensor<5x4xf32>', got 81}}
func.func private @weights_size() attributes {w = #flow.weights<"f", 0, 81> : tensor<5x4xf32>}

// -----

// expected-error @+1 {{offset and size must not be negative, got -4 and 80}}
func.func private @weights_offset() attributes {w = #flow.weights<"f", -4, 80> : tensor<5x4xf32>}

// -----

// expected-error @+1 {{weights need a static tensor type of integers or floats}}
func.func private @weights_type() attributes {w = #flow.weights<"f", 0, 80> : tensor<?x4xf32>}

// -----

// expected-error @+1 {{expected 2 SBP entries, one per mesh axis, got 1}}
func.func private @entries(!flow.dist<4xf32, #flow.mesh<"m", ["dp" = 2, "tp" = 2]>, [B]>)

// -----

// expected-error @+1 {{S(1) is out of range for a tensor of rank 1}}
func.func private @dist_dim(!flow.dist<4xf32, #flow.mesh<"m", ["dp" = 2]>, [S(1)]>)

// -----

// expected-error @+1 {{expected a float, integer, index or complex element type, got 'none'}}
func.func private @element(!flow.dist<4xnone, #flow.mesh<"m", ["dp" = 2]>, [B]>)

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
func.func @constrain_entries(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 1 SBP entries, one per mesh axis, got 2}}
  %c = flow.constrain %x to #m [#flow.sbp<B>, #flow.sbp<B>] : tensor<4xf32>
  return
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
func.func @constrain_dim(%x: tensor<4xf32>) {
  // expected-error @+1 {{S(1) is out of range for a tensor of rank 1}}
  %c = flow.constrain %x to #m [#flow.sbp<S(1)>] : tensor<4xf32>
  return
}

// -----

func.func @operator_name(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a name of the form 'domain.Operator', got 'Relu'}}
  %y = flow.operator "Relu" since 14 (%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @operator_version(%x: tensor<4xf32>) {
  // expected-error @+1 {{version must be positive, got 0}}
  %y = flow.operator "onnx.Relu" since 0 (%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
!t = !flow.dist<4xf32, #m, [B]>
func.func @compute_arguments(%x: !t) -> !t {
  // expected-error @+1 {{expected 1 block arguments, one per operand, got 0}}
  %y = flow.compute (%x : !t) -> !t {
    %c = arith.constant dense<0.0> : tensor<4xf32>
    flow.yield %c : tensor<4xf32>
  }
  return %y : !t
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
!t = !flow.dist<4xf32, #m, [B]>
func.func @compute_argument_type(%x: !t) -> !t {
  // expected-error @+1 {{block argument 0 must have the operand's global type 'tensor<4xf32>', got 'tensor<2xf32>'}}
  %y = flow.compute (%x : !t) -> !t {
  ^bb0(%a: tensor<2xf32>):
    %c = arith.constant dense<0.0> : tensor<4xf32>
    flow.yield %c : tensor<4xf32>
  }
  return %y : !t
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
!t = !flow.dist<4xf32, #m, [B]>
func.func @compute_results(%x: !t) -> !t {
  // expected-error @+1 {{expected 1 yielded values, one per result, got 0}}
  %y = flow.compute (%x : !t) -> !t {
  ^bb0(%a: tensor<4xf32>):
    flow.yield
  }
  return %y : !t
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
!t = !flow.dist<4xf32, #m, [B]>
func.func @compute_result_type(%x: !t) -> !t {
  // expected-error @+1 {{yielded value 0 must have the result's global type 'tensor<4xf32>', got 'tensor<2xf32>'}}
  %y = flow.compute (%x : !t) -> !t {
  ^bb0(%a: tensor<4xf32>):
    %c = arith.constant dense<0.0> : tensor<2xf32>
    flow.yield %c : tensor<2xf32>
  }
  return %y : !t
}

// -----

func.func @compute_plain_tensor(%x: tensor<4xf32>) {
  // expected-error @+1 {{operand 0 must be distributed or a scalar, got 'tensor<4xf32>'}}
  flow.compute (%x : tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>):
    flow.yield
  }
  return
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
#n = #flow.mesh<"n", ["dp" = 2]>
!t = !flow.dist<4xf32, #m, [B]>
!u = !flow.dist<4xf32, #n, [B]>
func.func @compute_two_meshes(%x: !t) -> !u {
  // expected-error @+1 {{expected all values on mesh #flow.mesh<"m", ["dp" = 2]>, got #flow.mesh<"n", ["dp" = 2]>}}
  %y = flow.compute (%x : !t) -> !u {
  ^bb0(%a: tensor<4xf32>):
    flow.yield %a : tensor<4xf32>
  }
  return %y : !u
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
func.func @boxing_shape(%x: !flow.dist<4xf32, #m, [B]>) -> !flow.dist<5xf32, #m, [B]> {
  // expected-error @+1 {{expected the result to keep the global type 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %y = flow.boxing %x : !flow.dist<4xf32, #m, [B]> -> !flow.dist<5xf32, #m, [B]>
  return %y : !flow.dist<5xf32, #m, [B]>
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
#n = #flow.mesh<"m", ["dp" = 3]>
func.func @boxing_axes(%x: !flow.dist<4xf32, #m, [B]>) -> !flow.dist<4xf32, #n, [B]> {
  // expected-error @+1 {{expected meshes with the same axes}}
  %y = flow.boxing %x : !flow.dist<4xf32, #m, [B]> -> !flow.dist<4xf32, #n, [B]>
  return %y : !flow.dist<4xf32, #n, [B]>
}
