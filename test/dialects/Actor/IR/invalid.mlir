// RUN: flow-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{expected one size per axis, got 2 sizes and 1 axes}}
actor.plan @m axes ["dp"] sizes [2, 3] stages 1 {
}

// -----

// expected-error @+1 {{axis sizes must be positive, got 0}}
actor.plan @m axes ["dp"] sizes [0] stages 1 {
}

// -----

// expected-error @+1 {{expected at least one stage, got 0}}
actor.plan @m axes ["dp"] sizes [2] stages 0 {
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "a" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
    }
  }
  // expected-error @+1 {{program 'a' occurs twice}}
  actor.program "a" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  // expected-error @+1 {{expected at least one micro-batch, got 0}}
  actor.program "a" micro_batches 0 {
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "a" micro_batches 1 {
    // expected-error @+1 {{expected one coordinate per mesh axis}}
    actor.class stage 0 from [0, 0] to [2, 2] {
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "a" micro_batches 1 {
    // expected-error @+1 {{box from 1 to 3 is not in an axis of size 2}}
    actor.class stage 0 from [1] to [3] {
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "a" micro_batches 1 {
    // expected-error @+1 {{stage 1 is out of range for 1 stages}}
    actor.class stage 1 from [0] to [2] {
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "a" micro_batches 1 {
    // expected-note @+1 {{the other class}}
    actor.class stage 0 from [0] to [2] {
    }
    // expected-error @+1 {{shares coordinates with another class of stage 0}}
    actor.class stage 0 from [1] to [2] {
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  // expected-error @+1 {{the classes of stage 0 cover 1 of 2 ranks}}
  actor.program "a" micro_batches 1 {
    actor.class stage 0 from [1] to [2] {
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      // expected-error @+1 {{bytes must not be negative, got -1}}
      %r = actor.register "r" step bytes -1
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      // expected-error @+1 {{'updated' needs a state}}
      %r = actor.register "r" step bytes 4 updated
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  %s = actor.state "w" stage 0 : tensor<5xf32>
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      // expected-error @+1 {{a state has rate step}}
      %r = actor.register "r" micro bytes 4 of %s : !actor.state
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  %s = actor.state "w" stage 0 : tensor<5xf32>
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "w" step bytes 20 of %s : !actor.state
      // expected-error @+1 {{writes state 'w', which needs an 'updated' register}}
      %p = actor.kernel @k "p" forward step () -> (%r)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      // expected-note @+1 {{the first producer}}
      %p = actor.kernel @k "p" forward step () -> (%r)
      // expected-error @+1 {{register 'r' has a second producer}}
      %p2 = actor.kernel @k "p" forward step () -> (%r)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %q = actor.register "q" step bytes 20
      // expected-error @+1 {{reads register 'q', which nobody writes}}
      %p = actor.kernel @k "p" forward step (%q) -> (%r)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      // expected-error @+1 {{expected one in-place entry per output, got 2 for 1 outputs}}
      %p = actor.kernel @k "p" forward step () -> (%r) inplace [-1, 0]
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      // expected-error @+1 {{in-place input 0 is out of range for 0 inputs}}
      %p = actor.kernel @k "p" forward step () -> (%r) inplace [0]
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %q = actor.register "q" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      // expected-error @+1 {{needs a monoid}}
      %c = actor.collective all_reduce "c" forward step axes ["dp"] elements 5 : f32 (%r) -> (%q)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %q = actor.register "q" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      // expected-error @+1 {{has no use for a monoid}}
      %c = actor.collective all_gather by sum "c" forward step axes ["dp"] elements 5 : f32 (%r) -> (%q)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %q = actor.register "q" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      // expected-error @+1 {{expected at least one axis}}
      %c = actor.collective all_gather "c" forward step axes [] elements 5 : f32 (%r) -> (%q)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %q = actor.register "q" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      // expected-error @+1 {{axis "dp" occurs twice}}
      %c = actor.collective all_gather "c" forward step axes ["dp", "dp"] elements 5 : f32 (%r) -> (%q)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %q = actor.register "q" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      // expected-error @+1 {{axis "tp" is not an axis of the plan}}
      %c = actor.collective all_gather "c" forward step axes ["tp"] elements 5 : f32 (%r) -> (%q)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      // expected-error @+1 {{expected 1 inputs and 1 outputs, got 1 and 0}}
      %c = actor.collective all_gather "c" forward step axes ["dp"] elements 5 : f32 (%r) -> ()
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      // expected-error @+1 {{peer stage 0 is not another one of 1 stages}}
      %c = actor.send "c" forward step to 0 channel 0 elements 5 : f32 (%r)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      // expected-error @+1 {{peer stage 1 is not another one of 1 stages}}
      %c = actor.recv "c" forward step from 1 channel 0 elements 5 : f32 -> (%r)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      // expected-error @+1 {{expected the register of a tensor}}
      %c = actor.load "c" forward step -> (%r)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      // expected-error @+1 {{expected 1 inputs and 1 outputs, got 0 and 1}}
      %c = actor.copy "c" forward step () -> (%r)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      actor.order compute {
        actor.fire %p micro_batch 0 at [0]
      }
      // expected-error @+1 {{stream compute has two orders}}
      actor.order compute {
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      actor.order compute {
        actor.fire %p micro_batch 0 at [0]
        // expected-error @+1 {{fires a second time for micro-batch 0}}
        actor.fire %p micro_batch 0 at [0]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 2 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" micro bytes 20
      // expected-error @+1 {{expected 2 firings in the orders, got 1}}
      %p = actor.kernel @k "p" forward micro () -> (%r)
      actor.order compute {
        actor.fire %p micro_batch 0 at [0]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      actor.order compute {
        // expected-error @+1 {{expected 1 offsets, one per register, got 2}}
        actor.fire %p micro_batch 0 at [0, 64]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      actor.order compute {
        // expected-error @+1 {{offset 4 is not aligned to 64 bytes}}
        actor.fire %p micro_batch 0 at [4]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] arena_bytes 64 {
      %r = actor.register "r" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      actor.order compute {
        // expected-error @+1 {{offset 128 is outside the arena}}
        actor.fire %p micro_batch 0 at [128]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      actor.order compute {
        // expected-error @+1 {{micro-batch 1 is out of range for 1}}
        actor.fire %p micro_batch 1 at [0]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      actor.order comm {
        // expected-error @+1 {{actor of stream compute in the order of stream comm}}
        actor.fire %p micro_batch 0 at [0]
      }
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "step" micro_batches 1 {
    actor.class stage 0 from [0] to [2] {
      %r = actor.register "r" step bytes 20
      %p = actor.kernel @k "p" forward step () -> (%r)
      actor.order compute {
        // expected-error @+1 {{waits for its own stream}}
        actor.fire %p micro_batch 0 at [0] after [#actor.wait<compute 1>]
      }
    }
  }
}

// -----

// expected-error @+1 {{expected at most two steps before, got 3}}
func.func private @f() attributes {a = #actor.wait<io 1, steps_before = 3>}

// -----

// expected-error @+1 {{count 0 is too small}}
func.func private @f() attributes {a = #actor.wait<io 0>}
