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

def ApplyConstraints : Pass<"flow-apply-constraints", "::mlir::ModuleOp"> {
  let summary = "writes the user's wishes into the module: mesh, SBP, stages";
  let description = [{
    Makes the mesh an attribute of the module, inserts a `flow.constrain` behind
    every value that an SBP request names, and tags ops with `flow.stage`.

    - `mesh=dp=2,tp=2`: axis names and sizes. Without it: a mesh of one rank
    - `sbp=NAME=[B,S(0)]`: one entry per mesh axis. NAME is an argument, a node (its
      last op of the forward part), a node's output or a function result; shell
      patterns match several. `P` is `P(sum)`. What asks for parts of an argument
      gets any decomposition. Optimizer slots follow their parameter. The dims are
      the model's: a leading dim of micro-batches is not counted
    - `stage=PATTERN=K`: matching nodes live on stage K, counted from 0

    Several requests are separated by `;` or given one by one; a later one about
    the same value replaces an earlier one.

    ```
    flow-opt --flow-apply-constraints="mesh=dp=2,tp=2 sbp=fc1.weight=[B,S(0)];fc2.weight=[B,S(1)]"
    ```

    **Constraints**
    - a name matches something
    - one entry per mesh axis
    - the dim of each `S` exists
    - stages are numbered without holes
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", "\"\"", "axis names and sizes">,
    ListOption<"sbp", "sbp", "std::string", "SBP requests, separated by ';'">,
    ListOption<"stages", "stage", "std::string", "stage requests, separated by ';'">];
  let dependentDialects = ["::flow::FlowDialect"];
}

def Distribute : Pass<"flow-distribute", "::mlir::ModuleOp"> {
  let summary = "decides how every value is held, and inserts the boxing";
  let description = [{
    From tensors and constraints to `!flow.dist` values: every op becomes a
    `flow.compute` with its inits inside, every change of SBP or stage a
    `flow.boxing`. The function that updates states is decided first; the others
    hold states the same way. Signatures are derived (`--flow-print-signatures`)
    and chosen along each mesh axis by the bytes that boxing moves over the whole
    function, where work along dims that the user split stays split.

    Where the user says nothing, inputs and labels are split by samples along the
    axis named `dp` (without one, along the first axis unless something is split
    along it), parameters are `B`. A partial value stays partial through linear
    ops and loops, so each gradient is reduced once per step. An op that has to
    run whole is remarked.

    ```mlir
    %y = flow.compute (%x : !flow.dist<6x5xf32, #m, [S(0)]>, %w : !flow.dist<5x4xf32, #m, [B]>)
           -> !flow.dist<6x4xf32, #m, [S(0)]> { ... linalg.matmul ... }
    ```
  }];
  let dependentDialects = ["::flow::FlowDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def VerifyDistribution : Pass<"flow-verify-distribution", "::mlir::ModuleOp"> {
  let summary = "checks what later phases may assume about a placed program";
  let description = [{
    **Constraints**
    - every `flow.compute` has a legal signature on every mesh axis
    - nothing else computes on distributed values, and only `flow.boxing` moves data
    - no tensor is left outside of `flow.compute`
    - a state comes back as its argument is held, and is held alike in all functions

    ```
    error: 'flow.compute' op has no legal signature on axis 'dp': [S(1), B] -> [S(0)]; ...
    ```
  }];
}

def RefineResults : Pass<"flow-refine-results", "::mlir::func::FuncOp"> {
  let summary = "functions return the shapes that are known";
  let description = [{
    A function that returns a `tensor.cast` returns its source instead. Belongs
    after the canonicalizer, which has moved the sizes of arguments through the
    body. For functions that nobody calls.

    ```mlir
    func.func @main(%x: tensor<6x5xf32>) -> tensor<?x5xf32> {
      %0 = tensor.cast %x : tensor<6x5xf32> to tensor<?x5xf32>
      return %0 : tensor<?x5xf32>
    // becomes
    func.func @main(%x: tensor<6x5xf32>) -> tensor<6x5xf32> {
      return %x : tensor<6x5xf32>
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

#endif
