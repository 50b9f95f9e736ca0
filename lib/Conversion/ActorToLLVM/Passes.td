// Conversion of plans to constant tables.
#ifndef FLOW_CONVERSION_ACTORTOLLVM_PASSES_TD
#define FLOW_CONVERSION_ACTORTOLLVM_PASSES_TD

include "mlir/Pass/PassBase.td"

def ActorToLLVM : Pass<"flow-actor-to-llvm", "::mlir::ModuleOp"> {
  let summary = "turn scheduled plans into the constant tables that the runtime executes";
  let description = [{
    All plans of the module become LLVM globals laid out as the structs of
    `include/flow/Runtime/abi.h`, under the symbol `flow_main_executable`; the
    first plan is the default. Kernels must be `llvm.func`s by now. Placed
    programs and `ml_program.global`s go.

    Module attribute `flow.executable`, all entries optional:
    `{kind = "trainer" | "inference", model = "m.onnx", batch = 64 : i64,
    loss = "none" | "softmax_cross_entropy" | "mse" | "output",
    weights_file = "m.weights", scalars = {lr = 0.1 : f64}}`. The first value of a
    state lies at `flow.file_offset` of its `ml_program.global`; zeros need none.

    ```mlir
    llvm.mlir.global external constant @flow_main_executable() : !llvm.struct<(i32, i32, ptr, ...)>
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::flow::FlowDialect"];
}

#endif
