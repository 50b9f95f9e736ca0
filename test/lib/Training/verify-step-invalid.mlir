// RUN: flow-opt %s --flow-verify-step --split-input-file --verify-diagnostics

// expected-error @below {{there is no function @step}}
module {}

// -----

// expected-error @below {{argument 0 of @step has no name or no kind}}
func.func @step(%x: tensor<3xf32>) { return }

// -----

// expected-error @below {{argument 0 of @step is 'tensor<?xf32>', expected a static tensor}}
func.func @step(%x: tensor<?xf32> {flow.kind = "input", flow.name = "x"}) { return }

// -----

ml_program.global private @w(dense<1.0> : tensor<4xf32>) : tensor<4xf32>
// expected-error @below {{state 'w' of @step has no initial value of type 'tensor<3xf32>'}}
func.func @step(%x: tensor<3xf32> {flow.initial = @w, flow.kind = "state", flow.name = "w"}) { return }

// -----

// expected-error @below {{result 0 of @step is no static tensor with a name and a kind}}
func.func @step(%x: tensor<3xf32> {flow.kind = "input", flow.name = "x"}) -> tensor<3xf32> { return %x : tensor<3xf32> }

// -----

// expected-error @below {{the loss of @step is 'tensor<3xf32>', expected a floating-point tensor of rank 0}}
func.func @step(%x: tensor<3xf32> {flow.kind = "input", flow.name = "x"}) -> (tensor<3xf32> {flow.kind = "loss", flow.name = "l"}) { return %x : tensor<3xf32> }

// -----

// expected-error @below {{@step has 0 losses, expected one}}
func.func @step(%x: tensor<3xf32> {flow.kind = "input", flow.name = "x"}) -> (tensor<3xf32> {flow.kind = "output", flow.name = "l"}) { return %x : tensor<3xf32> }

// -----

// expected-error @below {{state result 'x' of @step is not tied to one state argument of its type}}
func.func @step(%x: tensor<3xf32> {flow.kind = "input", flow.name = "x"}) -> (tensor<3xf32> {flow.kind = "state", flow.name = "x", flow.tied = 0 : i64}) { return %x : tensor<3xf32> }

// -----

func.func @step(%x: tensor<3xf32> {flow.kind = "input", flow.name = "x"}) {
  // expected-error @below {{a training step cannot hold flow.operator}}
  %y = flow.operator "onnx.Relu" since 14 (%x) {} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @step(%x: tensor<3x4xf32> {flow.kind = "input", flow.name = "x"}, %w: tensor<4x5xf32> {flow.kind = "input", flow.name = "w"}, %z: tensor<3x5xf32> {flow.kind = "input", flow.name = "z"}) {
  // expected-error @below {{a contraction and other arithmetic are one op; expected two}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<3x4xf32>, tensor<4x5xf32>) outs(%z : tensor<3x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %e = math.exp %b : f32
    %m = arith.mulf %a, %e : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  return
}
