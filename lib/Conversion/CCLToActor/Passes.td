// Conversion of class functions to actors.
#ifndef FLOW_CONVERSION_CCLTOACTOR_PASSES_TD
#define FLOW_CONVERSION_CCLTOACTOR_PASSES_TD

include "mlir/Pass/PassBase.td"

def CCLToActor : Pass<"flow-ccl-to-actor", "::mlir::ModuleOp"> {
  let summary = "turn class functions of kernel calls and ccl ops into actors";
  let description = [{
    Every function with `flow.class` becomes an `actor.class` of one `actor.plan`
    and is erased; kernels stay. Calls become `actor.kernel`, ccl ops collectives
    on the comm stream; they share registers, destinations vanish.

    - What stands in the loop over micro-batches gets rate `micro`; its carried
      values become `actor.carried`; the slice of an input that the loop takes
      becomes a load per micro-batch.
    - Other inputs, labels and scalars are loaded once per step.
    - A state is updated in place where the kernel allows it (`flow.inplace`)
      and no reader of the old value comes after; else by a copy at the end.
    - A result that is an argument, a state, another result or made in the loop
      is copied into a register of its own.

    The mesh is that of `flow.dist` of arguments and results, or of
    `flow.class = {mesh = ..}`.

    ```mlir
    %0 = call @k0(%x, %w) {flow.phase = #flow.phase<forward>} : ...
    %1 = ccl.all_reduce sum %0 into %e axes ["dp"] : tensor<6x5xf32> into tensor<6x5xf32>
    // becomes
    %run_fc = actor.kernel @k0 "fc" forward step (%r_x, %r_w) -> (%r_fc)
    %comm_fc = actor.collective all_reduce by sum "fc" forward step axes ["dp"] elements 30 : f32 (%r_fc) -> (%r_fc_0)
    ```
  }];
  let dependentDialects = ["::flow::actor::ActorDialect"];
}

#endif
