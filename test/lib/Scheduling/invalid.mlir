// RUN: flow-opt %s --split-input-file --flow-schedule --verify-diagnostics

// expected-error @+2 {{no order lets every actor fire}}
actor.plan @m axes ["rank"] sizes [1] stages 1 {
  actor.program "main" micro_batches 1 {
    actor.class stage 0 from [0] to [1] {
      %a = actor.register "a" step bytes 4
      %b = actor.register "b" step bytes 4
      // expected-note @+1 {{'k0' of stage 0 never gets what it needs}}
      %k0 = actor.kernel @k "k0" forward step (%b) -> (%a)
      %k1 = actor.kernel @k "k1" forward step (%a) -> (%b)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "main" micro_batches 1 {
    actor.class stage 0 from [0] to [1] {
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %k = actor.kernel @k "k" forward step () -> (%a)
      // expected-note @+1 {{the counterpart}}
      %c = actor.collective all_reduce by sum "c" forward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
    }
    actor.class stage 0 from [1] to [2] {
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %k = actor.kernel @k "k" forward step () -> (%a)
      // expected-error @+1 {{differs from its counterpart in another class of stage 0}}
      %c = actor.collective all_reduce by sum "c" forward step axes ["dp"] elements 3 : f32 (%a) -> (%b)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "main" micro_batches 1 {
    // expected-error @+1 {{has 0 collectives, another class of stage 0 has 1}}
    actor.class stage 0 from [0] to [1] {
    }
    actor.class stage 0 from [1] to [2] {
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %k = actor.kernel @k "k" forward step () -> (%a)
      %c = actor.collective all_reduce by sum "c" forward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
    }
  }
}

// -----

actor.plan @m axes ["dp"] sizes [2] stages 1 {
  actor.program "main" micro_batches 1 {
    actor.class stage 0 from [0] to [1] {
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %k = actor.kernel @k "k" forward step () -> (%a)
      %c = actor.collective all_reduce by sum "c" forward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
    }
    actor.class stage 0 from [1] to [2] {
      %a = actor.register "a" step bytes 16
      %b = actor.register "b" step bytes 16
      %e = actor.register "e" step bytes 32
      %k = actor.kernel @k "k" forward step () -> (%a)
      %c = actor.collective all_reduce by sum "c" forward step axes ["dp"] elements 4 : f32 (%a) -> (%b)
      // expected-error @+1 {{has no counterpart in the other classes of stage 0}}
      %d = actor.collective all_gather "d" forward step axes ["dp"] elements 4 : f32 (%a) -> (%e)
    }
  }
}

// -----

actor.plan @m axes ["rank"] sizes [1] stages 2 {
  actor.program "main" micro_batches 1 {
    actor.class stage 0 from [0] to [1] {
      %a = actor.register "a" step bytes 16
      %k = actor.kernel @k "k" forward step () -> (%a)
      // expected-error @+1 {{channel 7 has no recv on the other stage}}
      %s = actor.send "s" forward step to 1 channel 7 elements 4 : f32 (%a)
    }
    actor.class stage 1 from [0] to [1] {
    }
  }
}
