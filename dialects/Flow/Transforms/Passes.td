// Passes on placed programs that stay within the flow dialect.
#ifndef FLOW_TRANSFORMS_PASSES_TD
#define FLOW_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def Lockstep : Pass<"flow-lockstep", "::mlir::ModuleOp"> {
  let summary = "all ranks of a placed function as one function on whole tensors";
  let description = [{
    Replaces each function over `!flow.dist` values by one of the same name over
    whole tensors in which every rank's ops stand side by side and each
    `flow.boxing` is its definition: combine the parts of all ranks, cut the
    whole anew. Arguments are cut at the entry (a `P` argument into parts that no
    wrong rule survives: multiples that add up, values near an extremum), results
    are combined. So the function computes what the global program does, or a
    signature is wrong.

    The executable meaning of a placed program, for tests and for the
    certificate; needs no runtime. Its size grows with the number of ranks.

    ```mlir
    func.func @f(%x: !flow.dist<5xf32, #m, [P(sum)]>) -> !flow.dist<5xf32, #m, [B]> {
      %r = flow.boxing %x : ...
    // becomes, for two ranks,
    func.func @f(%x: tensor<5xf32>) -> tensor<5xf32> {
      %x0 = linalg.generic ...  // 2.5 * %x
      %x1 = linalg.generic ...  // -1.5 * %x
      %r = linalg.generic ...   // %x0 + %x1
    ```
  }];
  let dependentDialects = ["::flow::FlowDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def PrintBoxing : Pass<"flow-print-boxing", "::mlir::ModuleOp"> {
  let summary = "remarks how each boxing will be done";
  let description = [{
    One remark per `flow.boxing`: the steps of the cheapest path and the payload
    over all ranks.

    ```
    remark: all_reduce [dp, tp] -> [B, B]: 480 bytes
    ```
  }];
}

#endif
