// RUN: flow-opt %s --split-input-file --verify-diagnostics

func.func @all_reduce_types(%x: tensor<6xf32>, %e: tensor<5xf32>) {
  // expected-error @+1 {{expected a destination of type 'tensor<6xf32>', got 'tensor<5xf32>'}}
  %0 = ccl.all_reduce sum %x into %e axes ["dp"] : tensor<6xf32> into tensor<5xf32>
  return
}

// -----

func.func @no_axis(%x: tensor<6xf32>, %e: tensor<6xf32>) {
  // expected-error @+1 {{expected at least one axis}}
  %0 = ccl.all_reduce sum %x into %e axes [] : tensor<6xf32> into tensor<6xf32>
  return
}

// -----

func.func @axis_twice(%x: tensor<6xf32>, %e: tensor<6xf32>) {
  // expected-error @+1 {{axis 'dp' occurs twice}}
  %0 = ccl.all_reduce sum %x into %e axes ["dp", "dp"] : tensor<6xf32> into tensor<6xf32>
  return
}

// -----

func.func @all_gather_blocks(%x: tensor<6xf32>, %e: tensor<2x5xf32>) {
  // expected-error @+1 {{expected the destination to hold one block of type 'tensor<6xf32>' per member, got 'tensor<2x5xf32>'}}
  %0 = ccl.all_gather %x into %e axes ["dp"] : tensor<6xf32> into tensor<2x5xf32>
  return
}

// -----

func.func @reduce_scatter_blocks(%x: tensor<6xf32>, %e: tensor<6xf32>) {
  // expected-error @+1 {{expected the input to hold one block of type 'tensor<6xf32>' per member, got 'tensor<6xf32>'}}
  %0 = ccl.reduce_scatter sum %x into %e axes ["dp"] : tensor<6xf32> into tensor<6xf32>
  return
}

// -----

func.func @all_to_all_types(%x: tensor<2x6xf32>, %e: tensor<3x6xf32>) {
  // expected-error @+1 {{expected a destination of type 'tensor<2x6xf32>', got 'tensor<3x6xf32>'}}
  %0 = ccl.all_to_all %x into %e axes ["dp"] : tensor<2x6xf32> into tensor<3x6xf32>
  return
}

// -----

func.func @all_to_all_scalar(%x: tensor<f32>, %e: tensor<f32>) {
  // expected-error @+1 {{expected one block per member, got 'tensor<f32>'}}
  %0 = ccl.all_to_all %x into %e axes ["dp"] : tensor<f32> into tensor<f32>
  return
}

// -----

func.func @send_stage(%x: tensor<6xf32>) {
  // expected-error @+1 {{stage must not be negative, got -1}}
  ccl.send %x to stage -1 channel 0 : tensor<6xf32>
  return
}

// -----

func.func @recv_channel(%x: tensor<6xf32>) {
  // expected-error @+1 {{channel must not be negative, got -2}}
  %0 = ccl.recv %x from stage 0 channel -2 : tensor<6xf32>
  return
}

// -----

func.func @element_types(%x: tensor<6xf32>, %e: tensor<6xf64>) {
  // expected-error @+1 {{failed to verify that all of {input, init} have same element type}}
  %0 = ccl.all_reduce sum %x into %e axes ["dp"] : tensor<6xf32> into tensor<6xf64>
  return
}
