// Meshes, SBP entries and references to weights.
#ifndef FLOW_ATTRS_TD
#define FLOW_ATTRS_TD

include "dialects/Flow/IR/FlowDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

def Flow_SbpKind : I32EnumAttr<"SbpKind", "how one mesh axis holds a value", [
    I32EnumAttrCase<"Split", 0, "S">, I32EnumAttrCase<"Broadcast", 1, "B">,
    I32EnumAttrCase<"Partial", 2, "P">]> {
  let cppNamespace = "::flow";
  let genSpecializedAttr = 0;
}

def Flow_Monoid : I32EnumAttr<"Monoid", "how partial values combine", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">, I32EnumAttrCase<"Prod", 3, "prod">]> {
  let cppNamespace = "::flow";
  let genSpecializedAttr = 0;
}

def Flow_Phase : I32EnumAttr<"Phase", "the part of a training step", [
    I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"Backward", 1, "backward">,
    I32EnumAttrCase<"Update", 2, "update">]> {
  let cppNamespace = "::flow";
  let genSpecializedAttr = 0;
}
def Flow_PhaseAttr : EnumAttr<Flow_Dialect, Flow_Phase, "phase"> {
  let summary = "the part of a training step that an op belongs to";
  let description = [{
    ```mlir
    #flow.phase<backward>
    ```
  }];
  let assemblyFormat = "`<` $value `>`";
}

class Flow_Attr<string name, string mnemonic_, list<Trait> traits = []>
    : AttrDef<Flow_Dialect, name, traits> {
  let mnemonic = mnemonic_;
}

def Flow_SbpAttr : Flow_Attr<"Sbp", "sbp"> {
  let summary = "how one mesh axis holds a tensor: split, broadcast or partial";
  let description = [{
    - `S(i)`: the ranks of the axis hold consecutive runs of tensor dim `i`. The
      extent is cut into units of `unit` elements (default 1); of `n` units on
      `p` ranks the first `n mod p` ranks hold one unit more. A shard may be
      empty. The last unit may be incomplete.
    - `B`: every rank holds all of it.
    - `P(monoid)`: the value is the combination of what the ranks hold.

    ```mlir
    #flow.sbp<S(1)>  #flow.sbp<S(0, unit = 64)>  #flow.sbp<B>  #flow.sbp<P(sum)>
    ```

    **Constraints**
    - the dim of `S` is not negative
    - the unit of `S` is positive
  }];
  let parameters = (ins "::flow::SbpKind":$kind, "int64_t":$dim,
                        "int64_t":$unit, "::flow::Monoid":$monoid);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static SbpAttr split(::mlir::MLIRContext *c, int64_t dim, int64_t unit = 1) {
      return get(c, SbpKind::Split, dim, unit, Monoid::Sum);
    }
    static SbpAttr broadcast(::mlir::MLIRContext *c) {
      return get(c, SbpKind::Broadcast, 0, 1, Monoid::Sum);
    }
    static SbpAttr partial(::mlir::MLIRContext *c, Monoid m) {
      return get(c, SbpKind::Partial, 0, 1, m);
    }
    bool isSplit() const { return getKind() == SbpKind::Split; }
    bool isSplit(int64_t dim) const { return isSplit() && getDim() == dim; }
    bool isBroadcast() const { return getKind() == SbpKind::Broadcast; }
    bool isPartial() const { return getKind() == SbpKind::Partial; }
    /// `S(1)`, `S(0, unit = 64)`, `B`, `P(sum)`.
    std::string str() const;
  }];
}

def Flow_MeshAttr : Flow_Attr<"Mesh", "mesh"> {
  let summary = "a named n-d grid of ranks";
  let description = [{
    Ranks are numbered row-major over the axes, the first axis outermost. Each
    stage of a pipeline is one copy of the grid; the ranks of stage `s` follow
    those of stage `s - 1`.

    ```mlir
    #flow.mesh<"m", ["dp" = 2, "tp" = 4]>
    #flow.mesh<"m", ["dp" = 2, "tp" = 4], stage = 1>
    ```

    **Constraints**
    - one size per axis name
    - axis names are distinct
    - sizes are positive
    - the stage is not negative
  }];
  let parameters = (ins StringRefParameter<"name">:$name,
                        ArrayRefParameter<"::mlir::StringAttr">:$axisNames,
                        ArrayRefParameter<"int64_t">:$axisSizes,
                        "int64_t":$stage);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    size_t getNumAxes() const { return getAxisSizes().size(); }
    int64_t getNumRanks() const;
    /// The position of the axis with that name.
    std::optional<size_t> findAxis(::llvm::StringRef name) const;
    /// The same grid as another stage.
    MeshAttr atStage(int64_t stage) const;
  }];
}

def Flow_WeightsAttr : Flow_Attr<"Weights", "weights", [TypedAttrInterface]> {
  let summary = "constant bytes that stay in a file";
  let description = [{
    `size_in_bytes` bytes at `offset_in_bytes` of `file` are the row-major,
    little-endian elements of the typed attribute. A relative path is relative
    to the working directory of the tool that made the module. The compiler and
    the runtime map the file.

    ```mlir
    #flow.weights<"model.onnx", 1024, 802816> : tensor<784x256xf32>
    ```

    **Constraints**
    - offset and size are not negative
    - the type is a static tensor and the size is that of its elements
  }];
  let parameters = (ins "::mlir::StringAttr":$file, "int64_t":$offset_in_bytes,
                        "int64_t":$size_in_bytes,
                        AttributeSelfTypeParameter<"", "::mlir::RankedTensorType">:$type);
  let assemblyFormat = "`<` $file `,` $offset_in_bytes `,` $size_in_bytes `>`";
  let genVerifyDecl = 1;
}

def Flow_SbpArrayAttr : TypedArrayAttrBase<Flow_SbpAttr, "one SBP entry per mesh axis">;

#endif
