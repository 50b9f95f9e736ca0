// Passes that turn flow.operators of ONNX into linalg.
#ifndef FLOW_LEGALIZE_ONNX_PASSES_TD
#define FLOW_LEGALIZE_ONNX_PASSES_TD

include "mlir/Pass/PassBase.td"

def SetDims : Pass<"flow-set-dims", "mlir::ModuleOp"> {
  let summary = "fixes symbolic and batch dims of a model's inputs";
  let description = [{
    Each `NAME=N` gives the dims called NAME (argument attribute `flow.dims`) the
    size N; `batch=N` gives it to the first dim of every input that has no
    default. Only the arguments change: `--flow-infer-shapes` carries the sizes
    on; a body without flow.operators gets a `tensor.cast` to the old type, and
    keeps its static sizes. A name that no input has is an error and marks the module with
    `flow.failure = "usage"`.

    ```mlir
    // flow-opt --flow-set-dims="batch=64 N=8"
    func.func @main(%x: tensor<?x?x3xf32> {flow.dims = ["B", "N", ""], flow.kind = "input"})
    // becomes
    func.func @main(%x: tensor<64x8x3xf32> {flow.kind = "input"})
    ```
  }];
  let dependentDialects = ["mlir::tensor::TensorDialect"];
  let options = [
    ListOption<"dims", "dims", "std::string", "NAME=N or batch=N, separated by commas">
  ];
}

def InferShapes : Pass<"flow-infer-shapes", "mlir::ModuleOp"> {
  let summary = "computes the result types of flow.operators and folds shape arithmetic";
  let description = [{
    Walks each function once in order: an operator whose operands are static gets
    its result types from its rule; one whose operands are small constants is
    evaluated. Floating-point weights are never folded: they may be trained.
    Operators with a dynamic operand or without a rule keep the types that the
    file gave them. Shapes that contradict each other are an error at the node.

    ```mlir
    %s = flow.operator "onnx.Shape" since 15 (%x) {} : (tensor<2x3xf32>) -> tensor<?xi64>
    // becomes
    %s = arith.constant dense<[2, 3]> : tensor<2xi64>
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect"];
}

def LegalizeOnnx : Pass<"flow-legalize-onnx", "mlir::ModuleOp"> {
  let summary = "lowers flow.operators of ONNX to linalg, tensor, arith and math";
  let description = [{
    Each operator is replaced by the lowering of its name and since-version.
    Unsigned integers become signless ones (arguments and results that were
    unsigned carry `flow.unsigned`). Results of one generic are one contraction,
    or elementwise, or a reduction. All operators that cannot be lowered are
    reported in one error, and mark the module with
    `flow.failure = "unsupported"`.

    ```mlir
    %y = flow.operator "onnx.Relu" since 14 (%x) {} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    // becomes
    %y = linalg.generic {...} ins(%x : tensor<2x3xf32>) ... { arith.cmpf, arith.select }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect", "mlir::math::MathDialect",
                           "mlir::ml_program::MLProgramDialect", "mlir::scf::SCFDialect",
                           "mlir::tensor::TensorDialect"];
}

def VerifyImport : Pass<"flow-verify-import", "mlir::ModuleOp"> {
  let summary = "checks what the import phase promises";
  let description = [{
    - no `flow.operator` or `flow.absent` is left
    - ops are of linalg, tensor, arith, math, scf, func, ml_program or the flow dialect's closed list
    - all tensors have static shapes, signless integer or float elements
    - every function argument and result has a `flow.kind`
    - every op with a tensor result has a location that names the model's node

    ```mlir
    // error: 'flow.operator' op is left after import
    ```
  }];
}

#endif
