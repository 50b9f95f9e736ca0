// Requests and decisions about distribution.
#ifndef FLOW_DISTRIBUTION_OPS_TD
#define FLOW_DISTRIBUTION_OPS_TD

include "dialects/Flow/IR/FlowTypes.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Flow_ConstrainOp : Flow_Op<"constrain", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "asks for the SBP of a tensor";
  let description = [{
    A request on ordinary tensors: from here on the value has these SBP entries.
    Upstream cannot say this because tensor encodings are lost or bufferized
    away. Made by the user or `--flow-apply-constraints`, gone after
    `--flow-distribute`.

    ```mlir
    %w1 = flow.constrain %w to #m [#flow.sbp<B>, #flow.sbp<S(0)>] : tensor<1024x4096xf32>
    ```

    **Constraints**
    - one SBP entry per mesh axis
    - the dim of each `S` exists
  }];
  let arguments = (ins AnyRankedTensor:$input, Flow_MeshAttr:$mesh, Flow_SbpArrayAttr:$sbp);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `to` $mesh $sbp attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Flow_ComputeOp : Flow_Op<"compute", [IsolatedFromAbove, SingleBlock,
    RecursiveMemoryEffects, RecursivelySpeculatable]> {
  let summary = "a computation with its global meaning inside and its distribution in the types";
  let description = [{
    The region holds the global program; the types of operands and results say
    how the ranks hold them. It never communicates: the signature must be legal,
    that is, the same region on each rank's shards gives the ranks' parts of the
    results. Scalar operands are `B` by definition. Inits and constants are made
    inside the region. Upstream cannot say this because no foreign pattern may
    touch a decision. Made by `--flow-distribute`, gone after `--flow-localize`.

    `phase` says which part of a training step it belongs to.

    ```mlir
    %p = flow.compute (%x : !flow.dist<6x5xf32, #m, [S(1)]>, %w : !flow.dist<5x4xf32, #m, [S(0)]>)
        -> !flow.dist<6x4xf32, #m, [P(sum)]> {
    ^bb0(%a: tensor<6x5xf32>, %b: tensor<5x4xf32>):
      ...
      flow.yield %c : tensor<6x4xf32>
    }
    ```

    **Constraints**
    - one block argument per operand, of the operand's global type
    - one yielded value per result, of the result's global type
    - all distributed operands and results live on one mesh
  }];
  let arguments = (ins Variadic<AnyType>:$inputs, OptionalAttr<Flow_PhaseAttr>:$phase);
  let results = (outs Variadic<Flow_DistType>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Flow_YieldOp : Flow_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"ComputeOp">]> {
  let summary = "ends the region of a flow.compute";
  let description = [{
    ```mlir
    flow.yield %c : tensor<6x4xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Flow_BoxingOp : Flow_Op<"boxing", [Pure]> {
  let summary = "changes how the ranks hold a value";
  let description = [{
    The value stays the same; its SBP, its placement, or both change. All
    movement of data is in this op. Made by `--flow-distribute`, turned into
    `ccl` ops by `--flow-localize`.

    ```mlir
    %r = flow.boxing %p : !flow.dist<6x4xf32, #m, [P(sum)]> -> !flow.dist<6x4xf32, #m, [S(0)]>
    ```

    **Constraints**
    - global shape and element type stay the same
    - the meshes of both sides have the same axes; they may differ in stage
  }];
  let arguments = (ins Flow_DistType:$input, OptionalAttr<Flow_PhaseAttr>:$phase);
  let results = (outs Flow_DistType:$result);
  let assemblyFormat = "$input (`phase` $phase^)? attr-dict `:` qualified(type($input)) `->` qualified(type($result))";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

#endif
