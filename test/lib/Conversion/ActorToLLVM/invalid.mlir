// RUN: flow-opt %s --split-input-file --flow-actor-to-llvm --verify-diagnostics

actor.plan @m axes ["rank"] sizes [1] stages 1 {
  actor.program "main" micro_batches 1 {
    // expected-error @+1 {{is not scheduled}}
    actor.class stage 0 from [0] to [1] {
    }
  }
}

// -----

actor.plan @m axes ["rank"] sizes [1] stages 1 {
  actor.program "main" micro_batches 1 {
    actor.class stage 0 from [0] to [1] arena_bytes 64 {
      %a = actor.register "a" step bytes 4
      // expected-error @+1 {{kernel @k is not lowered to an llvm.func}}
      %k = actor.kernel @k "k" forward step () -> (%a)
    }
  }
}

// -----

actor.plan @a axes ["rank"] sizes [2] stages 1 {
}
// expected-error @+1 {{two plans for 2 ranks: a job of that size could not choose}}
actor.plan @b axes ["rank"] sizes [1] stages 2 {
}

// -----

ml_program.global private @w(dense<1.0> : tensor<5xf32>) : tensor<5xf32>
actor.plan @a axes ["rank"] sizes [2] stages 1 {
  // expected-error @+1 {{'w': its first value has no place in the weights file}}
  %w = actor.state "w" stage 0 initial @w : tensor<5xf32>
}

// -----

actor.plan @a axes ["rank"] sizes [2] stages 1 {
  // expected-error @+1 {{element type 'complex<f32>' is not supported at run time}}
  %w = actor.state "w" stage 0 : tensor<5xcomplex<f32>>
}

// -----

actor.plan @m axes ["rank"] sizes [2] stages 1 {
  actor.program "main" micro_batches 1 {
    // expected-error @+1 {{'y' is register 0 of one class and 1 of another}}
    %y = actor.tensor "y" output stage 0 : tensor<5xf32>
    actor.class stage 0 from [0] to [1] arena_bytes 64 {
      %a = actor.register "y" step bytes 4 of %y : !actor.tensor
    }
    actor.class stage 0 from [1] to [2] arena_bytes 64 {
      %b = actor.register "b" step bytes 4
      %a = actor.register "y" step bytes 4 of %y : !actor.tensor
    }
  }
}

// -----

// expected-error @+1 {{flow.executable: unknown kind 'game', expected trainer or inference}}
module attributes {flow.executable = {kind = "game"}} {
  actor.plan @m axes ["rank"] sizes [2] stages 1 {
  }
}
