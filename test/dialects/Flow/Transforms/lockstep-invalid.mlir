// RUN: flow-opt %s --flow-lockstep --split-input-file --verify-diagnostics

#m = #flow.mesh<"m", ["dp" = 2]>
#n = #flow.mesh<"n", ["dp" = 4]>
// expected-error @below {{expected one mesh per program}}
func.func @two_meshes(%x: !flow.dist<4xf32, #m, [B]>, %y: !flow.dist<4xf32, #n, [B]>) {
  return
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
// expected-error @below {{expected static extents}}
func.func @dynamic(%x: !flow.dist<?xf32, #m, [B]>) {
  return
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
// expected-error @below {{expected partial values of integers or floats}}
func.func @partial_complex(%x: !flow.dist<4xcomplex<f32>, #m, [P(sum)]>) {
  return
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
!b = !flow.dist<4xf32, #m, [B]>
func.func @foreign_op(%x: !b) -> !b {
  // expected-error @below {{does not work on distributed values}}
  %y = builtin.unrealized_conversion_cast %x : !b to !b
  return %y : !b
}
