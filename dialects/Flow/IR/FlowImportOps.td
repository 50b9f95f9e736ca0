// What reading a model file produces, before legalization.
#ifndef FLOW_IMPORT_OPS_TD
#define FLOW_IMPORT_OPS_TD

include "dialects/Flow/IR/FlowTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Flow_OperatorOp : Flow_Op<"operator", [Pure]> {
  let summary = "a node of a foreign graph, as read";
  let description = [{
    Reading a file decides nothing: each node is one op with the operator's
    qualified name, the since-version that its model's opset selects, and its
    attributes verbatim. Upstream cannot say this because every op of upstream
    has a meaning of its own. Made by the importers, gone after
    `--flow-legalize-onnx`. An absent optional operand is `flow.absent`.

    ```mlir
    %y = flow.operator "onnx.Gemm" since 13 (%x, %w, %b) {transB = 1 : i64}
         : (tensor<?x784xf32>, tensor<256x784xf32>, tensor<256xf32>) -> tensor<?x256xf32>
    ```

    **Constraints**
    - the name has the form `domain.Operator`
    - the version is positive
    - operands and results are tensors or, for absent operands, `none`
  }];
  let arguments = (ins StrAttr:$operator_name, I64Attr:$version, DictionaryAttr:$parameters,
                       Variadic<AnyTypeOf<[AnyTensor, NoneType]>>:$inputs);
  let results = (outs Variadic<AnyTypeOf<[AnyTensor, NoneType]>>:$outputs);
  let assemblyFormat = "$operator_name `since` $version `(` $inputs `)` $parameters attr-dict-with-keyword `:` functional-type($inputs, $outputs)";
  let hasVerifier = 1;
}

def Flow_AbsentOp : Flow_Op<"absent", [Pure, ConstantLike]> {
  let summary = "stands for an optional operand that a node does not have";
  let description = [{
    Made by the importers, gone after `--flow-legalize-onnx`.

    ```mlir
    %none = flow.absent
    ```
  }];
  let results = (outs NoneType:$result);
  let assemblyFormat = "attr-dict";
  let hasFolder = 1;
}

#endif
