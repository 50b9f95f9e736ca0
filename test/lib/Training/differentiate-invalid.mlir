// RUN: flow-opt %s --flow-differentiate="function=f of=y wrt=x" --split-input-file --verify-diagnostics

// expected-error @below {{there is no function @f to differentiate}}
module {}

// -----

// expected-error @below {{@f has no argument 'x'; it has 'a', ''}}
func.func @f(%a: tensor<3xf32> {flow.name = "a"}, %b: tensor<3xf32>) -> (tensor<3xf32> {flow.name = "y"}) {
  return %a : tensor<3xf32>
}

// -----

// expected-error @below {{@f has no result 'y'; it has 'z'}}
func.func @f(%x: tensor<3xf32> {flow.name = "x"}) -> (tensor<3xf32> {flow.name = "z"}) {
  return %x : tensor<3xf32>
}

// -----

// expected-error @below {{argument 'x' of type 'tensor<3xi64>' has no gradient; expected a floating-point tensor}}
func.func @f(%x: tensor<3xi64> {flow.name = "x"}, %b: tensor<3xf32>) -> (tensor<3xf32> {flow.name = "y"}) {
  return %b : tensor<3xf32>
}

// -----

// expected-error @below {{result 'y' has the dynamic type 'tensor<?xf32>'; fix its dims first}}
func.func @f(%x: tensor<?xf32> {flow.name = "x"}) -> (tensor<?xf32> {flow.name = "y"}) {
  return %x : tensor<?xf32>
}

// -----

func.func @f(%x: tensor<8xf32> {flow.name = "x"}) -> (tensor<2x4xf32> {flow.name = "y"}) {
  %d = tensor.empty() : tensor<2x4xf32>
  // expected-error @below {{there is no gradient of linalg.pack}}
  %y = linalg.pack %x inner_dims_pos = [0] inner_tiles = [4] into %d : tensor<8xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

func.func @f(%x: tensor<3x4xf32> {flow.name = "x"}, %i: tensor<3xf32>) -> (tensor<3xf32> {flow.name = "y"}) {
  // expected-error @below {{there is no gradient of a reduction that is neither a sum nor a maximum or minimum}}
  %y = linalg.reduce {arith.mulf} ins(%x : tensor<3x4xf32>) outs(%i : tensor<3xf32>) dimensions = [1]
  return %y : tensor<3xf32>
}

// -----

func.func @f(%x: tensor<3xf32> {flow.name = "x"}, %p: tensor<3xi32>) -> (tensor<3xf32> {flow.name = "y"}) {
  %e = tensor.empty() : tensor<3xf32>
  %y = linalg.map ins(%x, %p : tensor<3xf32>, tensor<3xi32>) outs(%e : tensor<3xf32>)
    (%a: f32, %q: i32, %o: f32) {
      %b = arith.bitcast %a : f32 to i32
      %c = arith.addi %b, %q : i32
      // expected-error @below {{there is no gradient of the scalar op arith.bitcast}}
      %d = arith.bitcast %c : i32 to f32
      linalg.yield %d : f32
    }
  return %y : tensor<3xf32>
}

// -----

func.func private @g(tensor<3xf32>) -> tensor<3xf32>
func.func @f(%x: tensor<3xf32> {flow.name = "x"}) -> (tensor<3xf32> {flow.name = "y"}) {
  // expected-error @below {{there is no gradient of a call of @g; inline it first}}
  %y = call @g(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

func.func @f(%x: tensor<f32> {flow.name = "x"}, %b: tensor<f32>) -> (tensor<f32> {flow.name = "y"}) {
  // expected-error @below {{there is no gradient of a loop whose trip count is not known before it runs}}
  %y = scf.while (%a = %x) : (tensor<f32>) -> tensor<f32> {
    %s = tensor.extract %a[] : tensor<f32>
    %l = tensor.extract %b[] : tensor<f32>
    %c = arith.cmpf olt, %s, %l : f32
    scf.condition(%c) %a : tensor<f32>
  } do {
  ^bb0(%a: tensor<f32>):
    %n = tensor.empty() : tensor<f32>
    %t = linalg.exp ins(%a : tensor<f32>) outs(%n : tensor<f32>) -> tensor<f32>
    scf.yield %t : tensor<f32>
  }
  return %y : tensor<f32>
}

// -----

func.func @f(%x: tensor<4xf32> {flow.name = "x"}, %i: tensor<3xindex>) -> (tensor<3xf32> {flow.name = "y"}) {
  %e = tensor.empty() : tensor<3xf32>
  // expected-error @below {{there is no gradient of a gather that is not alone in its op}}
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%i : tensor<3xindex>) outs(%e : tensor<3xf32>) {
  ^bb0(%k: index, %o: f32):
    %a = tensor.extract %x[%k] : tensor<4xf32>
    %b = math.exp %a : f32
    linalg.yield %b : f32
  } -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

func.func @f(%x: tensor<3xf32> {flow.name = "x"}, %s: tensor<f32>) -> (tensor<5xf32> {flow.name = "y"}) {
  %c0 = arith.constant 0 : index
  %v = tensor.extract %x[%c0] : tensor<3xf32>
  // expected-error @below {{there is no gradient of a padding value that depends on a parameter}}
  %y = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %v : f32
  } : tensor<3xf32> to tensor<5xf32>
  return %y : tensor<5xf32>
}
