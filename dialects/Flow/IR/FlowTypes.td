// The type of a distributed value.
#ifndef FLOW_TYPES_TD
#define FLOW_TYPES_TD

include "dialects/Flow/IR/FlowAttrs.td"

def Flow_DistType : TypeDef<Flow_Dialect, "Dist"> {
  let mnemonic = "dist";
  let summary = "a global tensor spread over a mesh";
  let description = [{
    Shape and element type are those of the whole tensor. Deliberately no shaped
    type: no pass that knows tensors can touch it.

    ```mlir
    !flow.dist<64x1024xf32, #flow.mesh<"m", ["dp" = 2, "tp" = 4]>, [S(0), P(sum)]>
    ```

    **Constraints**
    - the element type is a float, integer, index or complex type
    - one SBP entry per mesh axis
    - the dim of each `S` exists
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "::flow::MeshAttr":$mesh, ArrayRefParameter<"::flow::SbpAttr">:$sbp);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [TypeBuilderWithInferredContext<(ins
      "::mlir::RankedTensorType":$global, "::flow::MeshAttr":$mesh,
      "::llvm::ArrayRef<::flow::SbpAttr>":$sbp), [{
    return $_get(global.getContext(), global.getShape(), global.getElementType(), mesh, sbp);
  }]>];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getGlobalType() const {
      return ::mlir::RankedTensorType::get(getShape(), getElementType());
    }
    int64_t getRank() const { return getShape().size(); }
    /// The same value with other SBP entries.
    DistType withSbp(::llvm::ArrayRef<SbpAttr> sbp) const {
      return get(getContext(), getShape(), getElementType(), getMesh(), sbp);
    }
  }];
}

#endif
