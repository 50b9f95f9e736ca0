// Passes that cut class functions into kernels.
#ifndef FLOW_KERNELS_FUSION_PASSES_TD
#define FLOW_KERNELS_FUSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def FormKernels : Pass<"flow-form-kernels", "::mlir::ModuleOp"> {
  let summary = "group compute ops and outline each group into a kernel function";
  let description = [{
    Every tensor op of a class function (a `func.func` with `flow.class`; with
    `all`, any public function) moves into a pure tensor function with the
    unit attribute `flow.kernel`. What remains in the class function: calls of
    kernels, `ccl` ops, `tensor.empty` for their destinations, loops over
    micro-batches with their slices, and index arithmetic for those.

    Groups are
    - a contraction (any permuted or windowed form) with the pointwise ops that
      consume its result;
    - a connected run of pointwise ops and reductions over one iteration space;
    - any other op alone.

    Views, fills, constants and scalar arithmetic are cloned into each kernel
    that needs them. Groups never span two values of `flow.phase`, never a
    `ccl` op, and never make two kernels or collectives wait for each other. A
    contraction whose result a collective reads takes no epilogue: the
    collective would wait for it. Kernels with equal bodies are merged.

    Index arguments of the class function (the rank's mesh coordinates) come
    first in the kernel. A result that may be written over an input has the
    result attribute `flow.inplace`, the number of that argument: the kernel is
    pointwise, reads the input at the element that it writes, and loads every
    operand of an element before it stores any.

    ```mlir
    %0 = linalg.matmul ins(%x, %w : ...) outs(%fill : ...) -> tensor<6x5xf32>
    %1 = linalg.generic ... ins(%0, %bias : ...) -> tensor<6x5xf32>
    // becomes
    %1 = call @k0(%x, %w, %bias) : (...) -> tensor<6x5xf32>
    ```
  }];
  let options = [
    Option<"all", "all", "bool", "false", "also cut functions without flow.class">,
    Option<"exported", "exported", "bool", "false", "give kernels public visibility (tests call them)">,
    Option<"merge", "merge", "bool", "true", "merge kernels with equal bodies">];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect"];
}

#endif
