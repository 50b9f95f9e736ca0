// Collectives.
#ifndef CCL_OPS_TD
#define CCL_OPS_TD

include "dialects/CCL/IR/CCLDialect.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def CCL_Reduction : I32EnumAttr<"Reduction", "how blocks combine; members are combined in rank order", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">, I32EnumAttrCase<"Prod", 3, "prod">]> {
  let cppNamespace = "::flow::ccl";
  let genSpecializedAttr = 0;
}
def CCL_ReductionAttr : EnumAttr<CCL_Dialect, CCL_Reduction, "reduction"> {
  let summary = "how blocks combine";
  let description = [{
    ```mlir
    #ccl.reduction<sum>
    ```
  }];
  let assemblyFormat = "$value";
}

def CCL_AxesAttr : TypedArrayAttrBase<StrAttr, "mesh axes that span the group, outermost first">;

// Effects are declared without a resource: the order of collectives is part of
// the program, so they are neither removed, duplicated nor reordered.
class CCL_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : CCL_Op<mnemonic, traits # [DestinationStyleOpInterface,
        MemoryEffects<[MemRead, MemWrite]>, AllElementTypesMatch<["input", "init"]>,
        TypesMatchWith<"the result has the type of the destination", "init", "result", "$_self">]> {
  let results = (outs AnyStaticShapeTensor:$result);
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
  }];
  let hasVerifier = 1;
}

def CCL_AllReduceOp : CCL_CollectiveOp<"all_reduce"> {
  let summary = "every member gets the combination of all members' blocks";
  let description = [{
    ```mlir
    %r = ccl.all_reduce sum %x into %init axes ["dp"] : tensor<6x5xf32>
    ```

    **Constraints**
    - input and destination have one type
    - at least one axis, none twice
  }];
  let arguments = (ins CCL_ReductionAttr:$reduction, AnyStaticShapeTensor:$input,
                       AnyStaticShapeTensor:$init, CCL_AxesAttr:$axes);
  let assemblyFormat = "$reduction $input `into` $init `axes` $axes attr-dict `:` type($input) `into` type($init)";
}

def CCL_AllGatherOp : CCL_CollectiveOp<"all_gather"> {
  let summary = "every member gets all members' blocks";
  let description = [{
    Block `i` of the result is member `i`'s input.

    ```mlir
    %r = ccl.all_gather %x into %init axes ["tp"] {global = 10 : i64, dim = 1 : i64}
         : tensor<6x3xf32> into tensor<4x6x3xf32>
    ```

    **Constraints**
    - the destination is `[members] + block` where the input is the block
    - at least one axis, none twice
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, AnyStaticShapeTensor:$init, CCL_AxesAttr:$axes,
                       OptionalAttr<I64Attr>:$global, OptionalAttr<I64Attr>:$dim);
  let assemblyFormat = "$input `into` $init `axes` $axes attr-dict `:` type($input) `into` type($init)";
}

def CCL_ReduceScatterOp : CCL_CollectiveOp<"reduce_scatter"> {
  let summary = "member i gets the combination of all members' block i";
  let description = [{
    ```mlir
    %r = ccl.reduce_scatter sum %x into %init axes ["tp"] {global = 10 : i64, dim = 1 : i64}
         : tensor<4x6x3xf32> into tensor<6x3xf32>
    ```

    **Constraints**
    - the input is `[members] + block` where the destination is the block
    - at least one axis, none twice
  }];
  let arguments = (ins CCL_ReductionAttr:$reduction, AnyStaticShapeTensor:$input,
                       AnyStaticShapeTensor:$init, CCL_AxesAttr:$axes,
                       OptionalAttr<I64Attr>:$global, OptionalAttr<I64Attr>:$dim);
  let assemblyFormat = "$reduction $input `into` $init `axes` $axes attr-dict `:` type($input) `into` type($init)";
}

def CCL_AllToAllOp : CCL_CollectiveOp<"all_to_all"> {
  let summary = "member i's block j becomes member j's block i";
  let description = [{
    ```mlir
    %r = ccl.all_to_all %x into %init axes ["tp"] : tensor<4x2x3xf32> into tensor<4x2x3xf32>
    ```

    **Constraints**
    - input and destination have one type of the form `[members] + block`
    - at least one axis, none twice
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, AnyStaticShapeTensor:$init, CCL_AxesAttr:$axes,
                       OptionalAttr<I64Attr>:$global, OptionalAttr<I64Attr>:$dim);
  let assemblyFormat = "$input `into` $init `axes` $axes attr-dict `:` type($input) `into` type($init)";
}

def CCL_SendOp : CCL_Op<"send", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "gives a block to the rank with the same coordinates of another stage";
  let description = [{
    Pairs with the `ccl.recv` of the same channel in that stage's program.

    ```mlir
    ccl.send %x to stage 1 channel 0 : tensor<6x5xf32>
    ```

    **Constraints**
    - stage and channel are not negative
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, I64Attr:$stage, I64Attr:$channel);
  let assemblyFormat = "$input `to` `stage` $stage `channel` $channel attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def CCL_RecvOp : CCL_Op<"recv", [DestinationStyleOpInterface, MemoryEffects<[MemRead, MemWrite]>,
    TypesMatchWith<"the result has the type of the destination", "init", "result", "$_self">]> {
  let summary = "takes a block from the rank with the same coordinates of another stage";
  let description = [{
    ```mlir
    %r = ccl.recv %init from stage 0 channel 0 : tensor<6x5xf32>
    ```

    **Constraints**
    - stage and channel are not negative
  }];
  let arguments = (ins AnyStaticShapeTensor:$init, I64Attr:$stage, I64Attr:$channel);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$init `from` `stage` $stage `channel` $channel attr-dict `:` type($init)";
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
  }];
  let hasVerifier = 1;
}

#endif
