// RUN: flow-opt %s --split-input-file --flow-ccl-to-actor --verify-diagnostics

// expected-error @+1 {{no mesh in flow.dist, flow.class or flow.mesh}}
func.func @f() attributes {flow.class = {program = "main", stage = 0 : i64, lo = [0], hi = [1]}} {
  return
}

// -----

// expected-error @+1 {{expected flow.class = {program, stage, lo, hi}}}
func.func @f() attributes {flow.class = {program = "main"}} {
  return
}

// -----

#m = #flow.mesh<"m", ["rank" = 1]>
// expected-error @+1 {{argument 0 has no flow.name}}
func.func @f(%x: tensor<4xf32>) attributes {flow.class = {program = "main", stage = 0 : i64, lo = [0], hi = [1], mesh = #m}} {
  return
}

// -----

#m = #flow.mesh<"m", ["rank" = 1]>
// expected-error @+1 {{argument 'x' has unknown flow.kind 'weight'}}
func.func @f(%x: tensor<4xf32> {flow.name = "x", flow.kind = "weight"}) attributes {flow.class = {program = "main", stage = 0 : i64, lo = [0], hi = [1], mesh = #m}} {
  return
}

// -----

#m = #flow.mesh<"m", ["rank" = 1]>
func.func @f(%x: tensor<4xf32> {flow.name = "x"}) -> tensor<4xf32> attributes {flow.class = {program = "main", stage = 0 : i64, lo = [0], hi = [1], mesh = #m}} {
  // expected-error @+1 {{expected calls of kernels and ccl ops only, got math.exp}}
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#m = #flow.mesh<"m", ["rank" = 1]>
// expected-error @+1 {{result 0: flow.tied names no state argument}}
func.func @f(%x: tensor<4xf32> {flow.name = "x"}) -> (tensor<4xf32> {flow.kind = "state", flow.tied = 0 : i64}) attributes {flow.class = {program = "main", stage = 0 : i64, lo = [0], hi = [1], mesh = #m}} {
  return %x : tensor<4xf32>
}

// -----

#m = #flow.mesh<"m", ["rank" = 2]>
func.func private @k(%c: index, %x: tensor<4xf32>) -> tensor<4xf32> attributes {flow.kernel}
func.func @f(%c0: index, %x: tensor<4xf32> {flow.name = "x"}) -> tensor<4xf32> attributes {flow.class = {program = "main", stage = 0 : i64, lo = [0], hi = [2], mesh = #m}} {
  %i = arith.constant 1 : index
  // expected-error @+1 {{expected the rank's coordinates as index operands, in order}}
  %0 = call @k(%i, %x) : (index, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#m = #flow.mesh<"m", ["rank" = 2]>
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {flow.kernel}
func.func @f(%x: tensor<4xf32> {flow.name = "x"}) -> tensor<4xf32> attributes {flow.class = {program = "main", stage = 0 : i64, lo = [0], hi = [2], mesh = #m}} {
  // expected-note @+1 {{made by tensor.empty}}
  %e = tensor.empty() : tensor<4xf32>
  // expected-error @+1 {{reads a value that no kernel, collective or argument made}}
  %0 = call @k(%e) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#m = #flow.mesh<"m", ["rank" = 1]>
func.func @f(%n: index, %x: tensor<4xf32> {flow.name = "x"}) attributes {flow.class = {program = "main", stage = 0 : i64, lo = [0], hi = [1], mesh = #m}} {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  // expected-error @+1 {{expected a loop over micro-batches, from 0 to a positive constant by 1}}
  scf.for %m = %i0 to %n step %i1 {
  }
  return
}

// -----

#m = #flow.mesh<"m", ["rank" = 2]>
func.func @f(%w: tensor<4xf32> {flow.name = "w", flow.kind = "state", flow.dist = !flow.dist<4xf32, #m, [B]>}) attributes {flow.class = {program = "main", stage = 0 : i64, lo = [0], hi = [2]}} {
  return
}
// expected-error @+1 {{state 'w' is held as '!flow.dist<8xf32, #flow.mesh<"m", ["rank" = 2]>, [S(0)]>', but elsewhere as '!flow.dist<4xf32, #flow.mesh<"m", ["rank" = 2]>, [B]>'}}
func.func @g(%w: tensor<4xf32> {flow.name = "w", flow.kind = "state", flow.dist = !flow.dist<8xf32, #m, [S(0)]>}) attributes {flow.class = {program = "eval", stage = 0 : i64, lo = [0], hi = [2]}} {
  return
}
