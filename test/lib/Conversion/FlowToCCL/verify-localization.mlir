// RUN: flow-opt %s --flow-verify-localization --split-input-file --verify-diagnostics

#m = #flow.mesh<"m", ["dp" = 2]>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0]]}}} {
  // expected-error @below {{the classes of its stage have 1 ranks, expected 2}}
  func.func @f.s0.c0(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [1]}, flow.mesh = #m} {
    return
  }
  func.func private @f.placed()
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0, @f.s0.c1]]}}} {
  func.func @f.s0.c0(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [2]}, flow.mesh = #m} {
    return
  }
  // expected-error @below {{has ranks that are in class 'f.s0.c0' too}}
  func.func @f.s0.c1(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [1], hi = [2]}, flow.mesh = #m} {
    return
  }
  func.func private @f.placed()
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
// expected-error @below {{no function 'f.s0.c0'}}
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0]]}}} {
  func.func private @f.placed()
}

// -----

// expected-error @below {{expected 'flow.programs' to give mesh, placed function and stages of program 'f'}}
module attributes {flow.programs = {f = 1 : i64}} {
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0]]}}} {
  // expected-error @below {{argument 1 has type 'tensor<3xf32>', expected 'tensor<2xf32>'}}
  func.func @f.s0.c0(%c: index, %x: tensor<3xf32> {flow.dist = !flow.dist<4xf32, #m, [S(0)]>, flow.index = 0 : i64})
      attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [2]}, flow.mesh = #m} {
    return
  }
  func.func private @f.placed()
}

// -----

// 5 on 2 ranks are not of one size: not one class.
#m = #flow.mesh<"m", ["dp" = 2]>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0]]}}} {
  // expected-error @below {{argument 1 has type 'tensor<3xf32>', expected 'tensor<2xf32>'}}
  func.func @f.s0.c0(%c: index, %x: tensor<3xf32> {flow.dist = !flow.dist<5xf32, #m, [S(0)]>, flow.index = 0 : i64})
      attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [2]}, flow.mesh = #m} {
    return
  }
  func.func private @f.placed()
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0]]}}} {
  func.func @f.s0.c0(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [2]}, flow.mesh = #m} {
    // expected-error @below {{expected static shapes, got 'tensor<?xf32>'}}
    %e = tensor.empty(%c) : tensor<?xf32>
    return
  }
  func.func private @f.placed()
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0]]}}} {
  // expected-error @below {{result 0 and argument 1, which it replaces, are held differently}}
  func.func @f.s0.c0(%c: index, %x: tensor<4xf32> {flow.dist = !flow.dist<4xf32, #m, [B]>, flow.index = 0 : i64})
      -> (tensor<4xf32> {flow.dist = !flow.dist<4xf32, #m, [P(sum)]>, flow.index = 0 : i64, flow.tied = 1 : i64})
      attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [2]}, flow.mesh = #m} {
    return %x : tensor<4xf32>
  }
  func.func private @f.placed()
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0, @f.s0.c1]]}}} {
  func.func @f.s0.c0(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [1]}, flow.mesh = #m} {
    %x = tensor.empty() : tensor<4xf32>
    // expected-note @below {{see here}}
    %r = ccl.all_reduce sum %x into %x axes ["dp"] : tensor<4xf32> into tensor<4xf32>
    return
  }
  func.func @f.s0.c1(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [1], hi = [2]}, flow.mesh = #m} {
    %x = tensor.empty() : tensor<4xf32>
    // expected-error @below {{class function 'f.s0.c1' issues 'ccl.all_reduce max axes ["dp"]' where 'f.s0.c0' issues 'ccl.all_reduce sum axes ["dp"]'}}
    %r = ccl.all_reduce max %x into %x axes ["dp"] : tensor<4xf32> into tensor<4xf32>
    return
  }
  func.func private @f.placed()
}

// -----

#m = #flow.mesh<"m", ["dp" = 2]>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0, @f.s0.c1]]}}} {
  func.func @f.s0.c0(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [1]}, flow.mesh = #m} {
    %x = tensor.empty() : tensor<4xf32>
    %r = ccl.all_reduce sum %x into %x axes ["dp"] : tensor<4xf32> into tensor<4xf32>
    return
  }
  // expected-error @below {{has 0 collectives and regions with some, 'f.s0.c0' has 1}}
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
    // expected-note @below {{see here}}
    %r = ccl.all_reduce sum %x into %x axes ["dp"] : tensor<4xf32> into tensor<4xf32>
    return
  }
  func.func @f.s0.c1(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [1], hi = [2]}, flow.mesh = #m} {
    %x = tensor.empty() : tensor<3xf32>
    // expected-error @below {{moves blocks of type 'tensor<3xf32>', its peers in another class 'tensor<4xf32>'}}
    %r = ccl.all_reduce sum %x into %x axes ["dp"] : tensor<3xf32> into tensor<3xf32>
    return
  }
  func.func private @f.placed()
}

// -----

#m = #flow.mesh<"m", ["dp" = 3]>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0]]}}} {
  func.func @f.s0.c0(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [3]}, flow.mesh = #m} {
    %x = tensor.empty() : tensor<4xf32>
    %e = tensor.empty() : tensor<2x4xf32>
    // expected-error @below {{expected 3 blocks, one per member, got 2}}
    %r = ccl.all_gather %x into %e axes ["dp"] : tensor<4xf32> into tensor<2x4xf32>
    return
  }
  func.func private @f.placed()
}

// -----

#m = #flow.mesh<"m", ["dp" = 1]>
#m1 = #flow.mesh<"m", ["dp" = 1], stage = 1>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0], [@f.s1.c0]]}}} {
  func.func @f.s0.c0(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [1]}, flow.mesh = #m} {
    %x = tensor.empty() : tensor<4xf32>
    // expected-error @below {{nobody on stage 1 receives on channel 7}}
    ccl.send %x to stage 1 channel 7 : tensor<4xf32>
    return
  }
  func.func @f.s1.c0(%c: index) attributes {flow.class = {program = "f", stage = 1 : i64, lo = [0], hi = [1]}, flow.mesh = #m1} {
    return
  }
  func.func private @f.placed()
}

// -----

#m = #flow.mesh<"m", ["dp" = 1]>
#m1 = #flow.mesh<"m", ["dp" = 1], stage = 1>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0], [@f.s1.c0]]}}} {
  func.func @f.s0.c0(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [1]}, flow.mesh = #m} {
    return
  }
  func.func @f.s1.c0(%c: index) attributes {flow.class = {program = "f", stage = 1 : i64, lo = [0], hi = [1]}, flow.mesh = #m1} {
    %x = tensor.empty() : tensor<4xf32>
    // expected-error @below {{nobody on stage 0 sends on channel 7}}
    %r = ccl.recv %x from stage 0 channel 7 : tensor<4xf32>
    return
  }
  func.func private @f.placed()
}

// -----

#m = #flow.mesh<"m", ["dp" = 1]>
#m1 = #flow.mesh<"m", ["dp" = 1], stage = 1>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0], [@f.s1.c0]]}}} {
  func.func @f.s0.c0(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [1]}, flow.mesh = #m} {
    %x = tensor.empty() : tensor<4xf32>
    // expected-error @below {{waits for ever: its peer stands at another channel}}
    %r = ccl.recv %x from stage 1 channel 1 : tensor<4xf32>
    ccl.send %x to stage 1 channel 0 : tensor<4xf32>
    return
  }
  func.func @f.s1.c0(%c: index) attributes {flow.class = {program = "f", stage = 1 : i64, lo = [0], hi = [1]}, flow.mesh = #m1} {
    %x = tensor.empty() : tensor<4xf32>
    %r = ccl.recv %x from stage 0 channel 0 : tensor<4xf32>
    ccl.send %r to stage 0 channel 1 : tensor<4xf32>
    return
  }
  func.func private @f.placed()
}

// -----

#m = #flow.mesh<"m", ["dp" = 1]>
#m1 = #flow.mesh<"m", ["dp" = 1], stage = 1>
module attributes {flow.programs = {f = {mesh = #m, placed = @f.placed, stages = [[@f.s0.c0], [@f.s1.c0]]}}} {
  func.func @f.s0.c0(%c: index) attributes {flow.class = {program = "f", stage = 0 : i64, lo = [0], hi = [1]}, flow.mesh = #m} {
    %x = tensor.empty() : tensor<4xf32>
    ccl.send %x to stage 1 channel 0 : tensor<4xf32>
    return
  }
  func.func @f.s1.c0(%c: index) attributes {flow.class = {program = "f", stage = 1 : i64, lo = [0], hi = [1]}, flow.mesh = #m1} {
    %x = tensor.empty() : tensor<5xf32>
    // expected-error @below {{receives 'tensor<5xf32>' on channel 0, its peer sends 'tensor<4xf32>'}}
    %r = ccl.recv %x from stage 0 channel 0 : tensor<5xf32>
    return
  }
  func.func private @f.placed()
}
