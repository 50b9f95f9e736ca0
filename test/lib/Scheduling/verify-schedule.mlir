// RUN: flow-opt %s --split-input-file --flow-verify-schedule --verify-diagnostics

// A right plan, then one that is wrong in one place each.
actor.plan @m axes ["dp"] sizes [2] stages 1 {
  %s = actor.state "w" stage 0 : tensor<4xf32>
  actor.program "step" micro_batches 1 {
    %t = actor.tensor "x" input stage 0 : tensor<4xf32>
    actor.class stage 0 from [0] to [2] arena_bytes 320 {
      %x = actor.register "x" step bytes 16 of %t : !actor.tensor
      %w = actor.register "w" step bytes 16 of %s : !actor.state
      %w1 = actor.register "w" step bytes 16 updated of %s : !actor.state
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %load = actor.load "x" forward step -> (%x)
      %k0 = actor.kernel @k "k0" forward step (%x, %w) -> (%a)
      %ar = actor.collective all_reduce by sum "ar" backward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
      %k1 = actor.kernel @k "k1" update step (%w, %b) -> (%w1) inplace [0]
      actor.order compute {
        actor.fire %k0 micro_batch 0 at [0, 0, 128] after [#actor.wait<io 1>, #actor.wait<comm 1, steps_before = 1>]
        actor.fire %k1 micro_batch 0 at [0, 192, 0] after [#actor.wait<comm 1>]
      }
      actor.order comm {
        actor.fire %ar micro_batch 0 at [128, 192] after [#actor.wait<compute 1>]
      }
      actor.order io {
        actor.fire %load micro_batch 0 at [0] after [#actor.wait<compute 1, steps_before = 2>]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  %s = actor.state "w" stage 0 : tensor<4xf32>
  actor.program "step" micro_batches 1 {
    %t = actor.tensor "x" input stage 0 : tensor<4xf32>
    actor.class stage 0 from [0] to [2] arena_bytes 320 {
      %x = actor.register "x" step bytes 16 of %t : !actor.tensor
      %w = actor.register "w" step bytes 16 of %s : !actor.state
      %w1 = actor.register "w" step bytes 16 updated of %s : !actor.state
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %load = actor.load "x" forward step -> (%x)
      %k0 = actor.kernel @k "k0" forward step (%x, %w) -> (%a)
      %ar = actor.collective all_reduce by sum "ar" backward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
      %k1 = actor.kernel @k "k1" update step (%w, %b) -> (%w1) inplace [0]
      actor.order compute {
        // expected-error @+1 {{reads register 'x' before 'x' has certainly written it}}
        actor.fire %k0 micro_batch 0 at [0, 0, 128] after [#actor.wait<comm 1, steps_before = 1>]
        actor.fire %k1 micro_batch 0 at [0, 192, 0] after [#actor.wait<comm 1>]
      }
      actor.order comm {
        actor.fire %ar micro_batch 0 at [128, 192] after [#actor.wait<compute 1>]
      }
      actor.order io {
        actor.fire %load micro_batch 0 at [0] after [#actor.wait<compute 1, steps_before = 2>]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  %s = actor.state "w" stage 0 : tensor<4xf32>
  actor.program "step" micro_batches 1 {
    %t = actor.tensor "x" input stage 0 : tensor<4xf32>
    actor.class stage 0 from [0] to [2] arena_bytes 320 {
      %x = actor.register "x" step bytes 16 of %t : !actor.tensor
      %w = actor.register "w" step bytes 16 of %s : !actor.state
      %w1 = actor.register "w" step bytes 16 updated of %s : !actor.state
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %load = actor.load "x" forward step -> (%x)
      %k0 = actor.kernel @k "k0" forward step (%x, %w) -> (%a)
      %ar = actor.collective all_reduce by sum "ar" backward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
      %k1 = actor.kernel @k "k1" update step (%w, %b) -> (%w1) inplace [0]
      actor.order compute {
        actor.fire %k0 micro_batch 0 at [0, 0, 128] after [#actor.wait<io 1>, #actor.wait<comm 1, steps_before = 1>]
        // expected-error @+1 {{reads register 'b' at byte 256, but it lies at byte 192}}
        actor.fire %k1 micro_batch 0 at [0, 256, 0] after [#actor.wait<comm 1>]
      }
      actor.order comm {
        actor.fire %ar micro_batch 0 at [128, 192] after [#actor.wait<compute 1>]
      }
      actor.order io {
        actor.fire %load micro_batch 0 at [0] after [#actor.wait<compute 1, steps_before = 2>]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  %s = actor.state "w" stage 0 : tensor<4xf32>
  actor.program "step" micro_batches 1 {
    %t = actor.tensor "x" input stage 0 : tensor<4xf32>
    actor.class stage 0 from [0] to [2] arena_bytes 320 {
      %x = actor.register "x" step bytes 16 of %t : !actor.tensor
      %w = actor.register "w" step bytes 16 of %s : !actor.state
      %w1 = actor.register "w" step bytes 16 updated of %s : !actor.state
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %load = actor.load "x" forward step -> (%x)
      %k0 = actor.kernel @k "k0" forward step (%x, %w) -> (%a)
      %ar = actor.collective all_reduce by sum "ar" backward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
      %k1 = actor.kernel @k "k1" update step (%w, %b) -> (%w1) inplace [0]
      actor.order compute {
        // expected-error @+1 {{may read register 'x' after 'x' of micro-batch 0 has overwritten it}}
        actor.fire %k0 micro_batch 0 at [0, 0, 128] after [#actor.wait<io 1>, #actor.wait<comm 1, steps_before = 1>]
        actor.fire %k1 micro_batch 0 at [0, 192, 0] after [#actor.wait<comm 1>]
      }
      actor.order comm {
        actor.fire %ar micro_batch 0 at [128, 192] after [#actor.wait<compute 1>]
      }
      actor.order io {
        // expected-note @+1 {{nothing orders the two}}
        actor.fire %load micro_batch 0 at [0] 
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  %s = actor.state "w" stage 0 : tensor<4xf32>
  actor.program "step" micro_batches 1 {
    %t = actor.tensor "x" input stage 0 : tensor<4xf32>
    actor.class stage 0 from [0] to [2] arena_bytes 320 {
      %x = actor.register "x" step bytes 16 of %t : !actor.tensor
      %w = actor.register "w" step bytes 16 of %s : !actor.state
      %w1 = actor.register "w" step bytes 16 updated of %s : !actor.state
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %load = actor.load "x" forward step -> (%x)
      %k0 = actor.kernel @k "k0" forward step (%x, %w) -> (%a)
      %ar = actor.collective all_reduce by sum "ar" backward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
      %k1 = actor.kernel @k "k1" update step (%w, %b) -> (%w1) inplace [0]
      actor.order compute {
        actor.fire %k0 micro_batch 0 at [0, 0, 128] after [#actor.wait<io 1>, #actor.wait<comm 1, steps_before = 1>]
        // expected-error @+1 {{reads register 'b' before 'ar' has certainly written it}}
        actor.fire %k1 micro_batch 0 at [0, 192, 0]
      }
      actor.order comm {
        actor.fire %ar micro_batch 0 at [128, 192] after [#actor.wait<compute 1>]
      }
      actor.order io {
        actor.fire %load micro_batch 0 at [0] after [#actor.wait<compute 1, steps_before = 2>]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  %s = actor.state "w" stage 0 : tensor<4xf32>
  actor.program "step" micro_batches 1 {
    %t = actor.tensor "x" input stage 0 : tensor<4xf32>
    actor.class stage 0 from [0] to [2] arena_bytes 192 {
      %x = actor.register "x" step bytes 16 of %t : !actor.tensor
      %w = actor.register "w" step bytes 16 of %s : !actor.state
      %w1 = actor.register "w" step bytes 16 updated of %s : !actor.state
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %load = actor.load "x" forward step -> (%x)
      %k0 = actor.kernel @k "k0" forward step (%x, %w) -> (%a)
      %ar = actor.collective all_reduce by sum "ar" backward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
      %k1 = actor.kernel @k "k1" update step (%w, %b) -> (%w1) inplace [0]
      actor.order compute {
        actor.fire %k0 micro_batch 0 at [0, 0, 128] after [#actor.wait<io 1>, #actor.wait<comm 1, steps_before = 1>]
        actor.fire %k1 micro_batch 0 at [0, 192, 0] after [#actor.wait<comm 1>]
      }
      actor.order comm {
        // expected-error @+1 {{register 'b' ends at byte 208 of an arena of 192}}
        actor.fire %ar micro_batch 0 at [128, 192] after [#actor.wait<compute 1>]
      }
      actor.order io {
        actor.fire %load micro_batch 0 at [0] after [#actor.wait<compute 1, steps_before = 2>]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  %s = actor.state "w" stage 0 : tensor<4xf32>
  actor.program "step" micro_batches 1 {
    %t = actor.tensor "x" input stage 0 : tensor<4xf32>
    actor.class stage 0 from [0] to [2] arena_bytes 320 {
      %x = actor.register "x" step bytes 16 of %t : !actor.tensor
      %w = actor.register "w" step bytes 16 of %s : !actor.state
      %w1 = actor.register "w" step bytes 16 updated of %s : !actor.state
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %load = actor.load "x" forward step -> (%x)
      %k0 = actor.kernel @k "k0" forward step (%x, %w) -> (%a)
      %ar = actor.collective all_reduce by sum "ar" backward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
      %k1 = actor.kernel @k "k1" update step (%w, %b) -> (%w1) inplace [0]
      actor.order compute {
        actor.fire %k0 micro_batch 0 at [0, 0, 128] after [#actor.wait<io 1>, #actor.wait<comm 1, steps_before = 1>]
        actor.fire %k1 micro_batch 0 at [0, 128, 0] after [#actor.wait<comm 1>]
      }
      actor.order comm {
        // expected-error @+1 {{writes over register 'a', which it reads}}
        actor.fire %ar micro_batch 0 at [128, 128] after [#actor.wait<compute 1>]
      }
      actor.order io {
        actor.fire %load micro_batch 0 at [0] after [#actor.wait<compute 1, steps_before = 2>]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  %s = actor.state "w" stage 0 : tensor<4xf32>
        // expected-error @+1 {{the orders have a cycle: stage 0 compute 'k0' of micro-batch 0 waits for stage 0 comm 'ar' of micro-batch 0 waits for stage 0 compute 'k0' of micro-batch 0}}
  actor.program "step" micro_batches 1 {
    %t = actor.tensor "x" input stage 0 : tensor<4xf32>
    actor.class stage 0 from [0] to [2] arena_bytes 320 {
      %x = actor.register "x" step bytes 16 of %t : !actor.tensor
      %w = actor.register "w" step bytes 16 of %s : !actor.state
      %w1 = actor.register "w" step bytes 16 updated of %s : !actor.state
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %load = actor.load "x" forward step -> (%x)
      %k0 = actor.kernel @k "k0" forward step (%x, %w) -> (%a)
      %ar = actor.collective all_reduce by sum "ar" backward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
      %k1 = actor.kernel @k "k1" update step (%w, %b) -> (%w1) inplace [0]
      actor.order compute {
        actor.fire %k0 micro_batch 0 at [0, 0, 128] after [#actor.wait<io 1>, #actor.wait<comm 1>]
        actor.fire %k1 micro_batch 0 at [0, 192, 0] after [#actor.wait<comm 1>]
      }
      actor.order comm {
        actor.fire %ar micro_batch 0 at [128, 192] after [#actor.wait<compute 1>]
      }
      actor.order io {
        actor.fire %load micro_batch 0 at [0] after [#actor.wait<compute 1, steps_before = 2>]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [1] stages 2 {
  // expected-error @+1 {{the orders have a cycle: stage 1 comm 'back' of micro-batch 0 waits for stage 0 comm 'there' of micro-batch 0 waits for stage 1 comm 'back' of micro-batch 0}}
  actor.program "main" micro_batches 1 {
    actor.class stage 0 from [0] to [1] arena_bytes 128 {
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %k = actor.kernel @k "k" forward step () -> (%a)
      %s = actor.send "there" forward step to 1 channel 0 elements 4 : f32 (%a)
      %r = actor.recv "back" forward step from 1 channel 1 elements 4 : f32 -> (%b)
      actor.order compute {
        actor.fire %k micro_batch 0 at [0]
      }
      actor.order comm {
        actor.fire %s micro_batch 0 at [0] after [#actor.wait<compute 1>]
        actor.fire %r micro_batch 0 at [64]
      }
    }
    actor.class stage 1 from [0] to [1] arena_bytes 128 {
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %k = actor.kernel @k "k" forward step () -> (%a)
      %s = actor.send "back" forward step to 0 channel 1 elements 4 : f32 (%a)
      %r = actor.recv "there" forward step from 0 channel 0 elements 4 : f32 -> (%b)
      actor.order compute {
        actor.fire %k micro_batch 0 at [0]
      }
      actor.order comm {
        actor.fire %s micro_batch 0 at [0] after [#actor.wait<compute 1>]
        actor.fire %r micro_batch 0 at [64]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "main" micro_batches 1 {
    actor.class stage 0 from [0] to [1] arena_bytes 128 {
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %c = actor.register "c" step bytes 16
      %k = actor.kernel @k "k" forward step () -> (%a)
      %x = actor.collective all_reduce by sum "x" forward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
      %y = actor.collective all_reduce by max "y" forward step axes ["dp"] elements 4 : f32 (%a) -> (%c)
      actor.order compute {
        actor.fire %k micro_batch 0 at [0]
      }
      actor.order comm {
        // expected-error @+1 {{meets 'y' of another class of its stage: members would exchange different things}}
        actor.fire %x micro_batch 0 at [0, 64] after [#actor.wait<compute 1>]
        actor.fire %y micro_batch 0 at [0, 64]
      }
    }
    actor.class stage 0 from [1] to [2] arena_bytes 128 {
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %c = actor.register "c" step bytes 16
      %k = actor.kernel @k "k" forward step () -> (%a)
      %x = actor.collective all_reduce by sum "x" forward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
      %y = actor.collective all_reduce by max "y" forward step axes ["dp"] elements 4 : f32 (%a) -> (%c)
      actor.order compute {
        actor.fire %k micro_batch 0 at [0]
      }
      actor.order comm {
        // expected-note @+1 {{the other class}}
        actor.fire %y micro_batch 0 at [0, 64] after [#actor.wait<compute 1>]
        actor.fire %x micro_batch 0 at [0, 64]
      }
    }
  }
}
