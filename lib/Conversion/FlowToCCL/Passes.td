// From placed programs to one function per rank class.
#ifndef FLOW_FLOWTOCCL_PASSES_TD
#define FLOW_FLOWTOCCL_PASSES_TD

include "mlir/Pass/PassBase.td"

def Localize : Pass<"flow-localize", "::mlir::ModuleOp"> {
  let summary = "one function per rank class on local tensors and ccl ops";
  let description = [{
    A *rank class* is a box of mesh coordinates of one stage whose ranks hold
    shards of the same sizes. For each class of each stage of a placed function
    `@step` there is a function `@step.sS.cC` with

    - arguments: the coordinates (`index`, one per mesh axis), then the arguments
      that the stage holds, as shards; results likewise. Their attributes are
      kept; `flow.dist` has the distributed type, `flow.index` the position in the
      placed function, and `flow.tied` counts the arguments of this function
    - `flow.class = {program = "step", stage = S, lo = [..], hi = [..]}` and
      `flow.mesh`, the grid of that stage
    - a body of static local tensors. Coordinates occur only in offsets. A boxing
      is the cheapest path of single collectives with packing and unpacking
      around; between stages it is a `ccl.send` and a `ccl.recv` of one channel.

    The placed function stays as `@step.placed`, private, with the attribute
    `flow.placed`: what the certificate compares with. The module attribute
    `flow.programs` lists per program the mesh, the placed function and the
    class functions of each stage.

    Size and time grow with the classes, not with the ranks.

    ```mlir
    func.func @f(%x: !flow.dist<6x5xf32, #m, [S(1)]>) -> !flow.dist<6x5xf32, #m, [B]> {
      %r = flow.boxing %x : ...
    // becomes, for two ranks,
    func.func @f.s0.c0(%c: index, %x: tensor<6x3xf32> ...) -> (tensor<6x5xf32> ...) {
      %blocks = ccl.all_gather %x into %e axes ["tp"] {dim = 1 : i64, global = 5 : i64} ...
      ... // concatenation of 3 columns and 2 columns
    func.func @f.s0.c1(%c: index, %x: tensor<6x2xf32> ...) -> (tensor<6x5xf32> ...)
    ```
  }];
  let dependentDialects = ["::flow::FlowDialect", "::flow::ccl::CCLDialect",
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"];
}

def VerifyLocalization : Pass<"flow-verify-localization", "::mlir::ModuleOp"> {
  let summary = "checks what later phases may assume of localized programs";
  let description = [{
    Changes nothing. For each program of `flow.programs`:

    - the class boxes of a stage tile its mesh
    - a class function has no distributed values, only static shapes, and its
      arguments and results are the shards that their `flow.dist` says, for every
      rank of the class
    - all classes of a stage issue the same collectives in the same order, in the
      same loops and branches
    - blocks of one collective have one type in all classes that meet in a group
    - every channel has one send and one recv, in the stages that they name, of
      one type for each pair of peers; sends and receives of two stages are in an
      order in which none waits for ever

    ```
    error: class function 'f.s0.c1' issues ccl.all_gather over ["tp"] where 'f.s0.c0' issues ccl.all_reduce
    ```
  }];
}

def SimulateRanks : Pass<"flow-simulate-ranks", "::mlir::ModuleOp"> {
  let summary = "runs the class functions of all ranks in one function on whole tensors";
  let description = [{
    For each program of `flow.programs`, a function of the program's name on whole
    tensors: arguments are cut at the entry as in `--flow-lockstep`, each rank's
    class function is instantiated with its coordinates, a `ccl` op becomes its
    definition over the values of the group when all its members have reached it,
    results are combined. So it computes what the global program does, or
    localization is wrong; if ranks wait for each other, it is an error. Class
    functions and placed functions are gone afterwards.

    For tests and for the certificate; needs no runtime. Its size grows with the
    number of ranks.

    ```mlir
    func.func @f(%x: tensor<6x5xf32>) -> tensor<6x5xf32> {
      %x0 = tensor.extract_slice %x[0, 0] [6, 3] [1, 1] ...
      %x1 = tensor.extract_slice %x[0, 3] [6, 2] [1, 1] ...
      ...
    ```
  }];
  let dependentDialects = ["::flow::FlowDialect", "::flow::ccl::CCLDialect",
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

#endif
