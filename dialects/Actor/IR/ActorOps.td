// Plans, programs, classes, registers, actors and orders.
#ifndef ACTOR_OPS_TD
#define ACTOR_OPS_TD

include "dialects/Actor/IR/ActorDialect.td"
include "dialects/Actor/IR/ActorInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/CommonAttrConstraints.td"

class Actor_Op<string mnemonic, list<Trait> traits = []> : Op<Actor_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// What holds the actors
//===----------------------------------------------------------------------===//

def Actor_PlanOp : Actor_Op<"plan", [Symbol, IsolatedFromAbove, NoTerminator, SingleBlock,
                                     HasParent<"::mlir::ModuleOp">]> {
  let summary = "what the ranks of one mesh execute";
  let description = [{
    Holds the states that its programs share, and the programs. A job has
    `stages` times the product of `sizes` ranks; those of a stage are numbered
    row-major over the axes. Made by `--flow-ccl-to-actor`, gone after
    `--flow-actor-to-llvm`.

    ```mlir
    actor.plan @m axes ["dp", "tp"] sizes [2, 4] stages 1 {
      %w = actor.state "fc1.weight" stage 0 : !flow.dist<...>
      actor.program "step" micro_batches 1 { ... }
    }
    ```

    **Constraints**
    - one positive size per axis, at least one stage
    - programs have different names
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axes, DenseI64ArrayAttr:$sizes,
                       I64Attr:$stages);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `axes` $axes `sizes` $sizes `stages` $stages attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Actor_StateOp : Actor_Op<"state", [HasParent<"PlanOp">, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "a tensor that lives as long as the job";
  let description = [{
    `initial` is the `ml_program.global` with the first value; without one it is
    zero. `parameter` marks what a trained model consists of. The type says how
    ranks hold it; `unsigned` says what its signless integers are outside.

    ```mlir
    %w = actor.state "fc1.weight" stage 0 parameter initial @fc1.weight : !flow.dist<...>
    ```
  }];
  let arguments = (ins StrAttr:$state_name, I64Attr:$stage, UnitAttr:$parameter,
                       OptionalAttr<FlatSymbolRefAttr>:$initial, UnitAttr:$is_unsigned, TypeAttr:$held);
  let results = (outs Actor_StateType:$state);
  let assemblyFormat = [{
    $state_name `stage` $stage (`parameter` $parameter^)? (`initial` $initial^)? (`unsigned` $is_unsigned^)?
    attr-dict `:` $held
  }];
}

def Actor_ProgramOp : Actor_Op<"program", [HasParent<"PlanOp">, NoTerminator, SingleBlock]> {
  let summary = "one function of the model: a step, an evaluation, an inference";
  let description = [{
    `template` names the order of units that `--flow-schedule` chose, and
    `expected_ns` is its estimate of a step.

    ```mlir
    actor.program "step" micro_batches 4 {
      %x = actor.tensor "x" input stage 0 : !flow.dist<...>
      actor.class stage 0 from [0] to [2] { ... }
    }
    ```

    **Constraints**
    - at least one micro-batch
    - every coordinate of every stage lies in one class
  }];
  let arguments = (ins StrAttr:$program_name, I64Attr:$micro_batches, OptionalAttr<StrAttr>:$template_name,
                       OptionalAttr<I64Attr>:$expected_ns);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $program_name `micro_batches` $micro_batches (`template` $template_name^)?
    (`expected_ns` $expected_ns^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Actor_TensorOp : Actor_Op<"tensor", [HasParent<"ProgramOp">, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "a value that a program exchanges with the world";
  let description = [{
    An input of a training step has the shape of one micro-batch. `fallback` is
    the global with the value that an input takes when nobody gives it. `classes`
    limits the values of a label.

    ```mlir
    %x = actor.tensor "x" input stage 0 : !flow.dist<...>
    ```
  }];
  let arguments = (ins StrAttr:$tensor_name, Actor_TensorKindAttr:$kind, I64Attr:$stage,
                       OptionalAttr<FlatSymbolRefAttr>:$fallback, OptionalAttr<I64Attr>:$classes,
                       UnitAttr:$is_unsigned, TypeAttr:$held);
  let results = (outs Actor_TensorType:$tensor);
  let assemblyFormat = [{
    $tensor_name $kind `stage` $stage (`fallback` $fallback^)? (`classes` $classes^)? (`unsigned` $is_unsigned^)?
    attr-dict `:` $held
  }];
}

def Actor_ClassOp : Actor_Op<"class", [HasParent<"ProgramOp">, NoTerminator, SingleBlock,
                                       DeclareOpInterfaceMethods<RegionKindInterface>]> {
  let summary = "the ranks of a stage with the same local shapes";
  let description = [{
    The ranks whose coordinates lie in the box from `lo` to `hi` (exclusive).
    Registers, actors and, after scheduling, an order per stream. The region is
    a graph: `actor.carried` refers to registers that stand later.

    ```mlir
    actor.class stage 0 from [0, 0] to [1, 2] {
      %x = actor.register "x" step bytes 120 of %t : !actor.tensor
      %y = actor.register "y" step bytes 96
      %load = actor.load "x" forward step -> (%x)
      %fc = actor.kernel @k0 "fc" forward step (%x) -> (%y)
    }
    ```

    **Constraints**
    - a box that lies in the mesh and is not empty
    - every register that is read has one producer, or is a state
    - at most one order per stream, in which each firing of each actor of the
      stream stands once
  }];
  let arguments = (ins I64Attr:$stage, DenseI64ArrayAttr:$lo, DenseI64ArrayAttr:$hi,
                       OptionalAttr<I64Attr>:$arena_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `stage` $stage `from` $lo `to` $hi (`arena_bytes` $arena_bytes^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

def Actor_RegisterOp : Actor_Op<"register", [HasParent<"ClassOp">, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "a buffer with one producer";
  let description = [{
    Lives in the rank's arena, or, with a state, is that state's storage: as the
    step found it, or, with `updated`, as the step leaves it. With a tensor, it
    is what the rank exchanges with the world, and has two slots that steps use
    in turn, so that the next step's batch is loaded, and this step's results
    are read, while a step runs.

    ```mlir
    %y = actor.register "y" micro bytes 96
    %x = actor.register "x" micro bytes 120 of %t : !actor.tensor
    %w = actor.register "w" step bytes 80 updated of %s : !actor.state
    ```

    **Constraints**
    - bytes are not negative
    - `updated` only with a state
    - a state has rate step
  }];
  let arguments = (ins StrAttr:$register_name, Actor_RateAttr:$rate, I64Attr:$bytes, UnitAttr:$updated,
                       Optional<Actor_ExchangedType>:$exchanged);
  let results = (outs Actor_RegisterType:$reg);
  let assemblyFormat = [{
    $register_name $rate `bytes` $bytes (`updated` $updated^)? (`of` $exchanged^ `:` type($exchanged))? attr-dict
  }];
  let extraClassDeclaration = [{
    bool isState() { return getExchanged() && ::llvm::isa<StateType>(getExchanged().getType()); }
    bool isTensor() { return getExchanged() && ::llvm::isa<TensorType>(getExchanged().getType()); }
  }];
  let hasVerifier = 1;
}

def Actor_CarriedOp : Actor_Op<"carried", [HasParent<"ClassOp">]> {
  let summary = "what the micro-batch before left";
  let description = [{
    In micro-batch 0 it is `initial`, in micro-batch m the instance m - 1 of
    `next`. No buffer of its own.

    ```mlir
    %before = actor.carried %zero, %sum
    ```
  }];
  let arguments = (ins Actor_RegisterType:$initial, Actor_RegisterType:$next);
  let results = (outs Actor_RegisterType:$reg);
  let assemblyFormat = "$initial `,` $next attr-dict";
}

//===----------------------------------------------------------------------===//
// Actors
//===----------------------------------------------------------------------===//

class Actor_UnitOp<string mnemonic, list<Trait> traits = []>
    : Actor_Op<mnemonic, traits # [HasParent<"ClassOp">, Actor_ActorOpInterface,
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let results = (outs Actor_ActorType:$actor);
  let hasVerifier = 1;
}

def Actor_KernelOp : Actor_UnitOp<"kernel", [AttrSizedOperandSegments]> {
  let summary = "runs a kernel";
  let description = [{
    `inplace` has an entry per output: the input whose storage it may take over,
    or -1. Scheduling decides whether it does. `flops` and `bytes_moved` estimate
    the work. Scratch is added by `--flow-schedule`.

    ```mlir
    %fc = actor.kernel @k0 "fc" forward micro (%x, %w) -> (%y) {flops = 960 : i64, bytes_moved = 296 : i64}
    ```

    **Constraints**
    - one in-place entry per output, -1 or the number of an input
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, StrAttr:$actor_name, Actor_PhaseAttr:$phase, Actor_RateAttr:$rate,
                       Variadic<Actor_RegisterType>:$inputs, Variadic<Actor_RegisterType>:$outputs,
                       Variadic<Actor_RegisterType>:$scratch, OptionalAttr<DenseI64ArrayAttr>:$inplace,
                       DefaultValuedAttr<I64Attr, "0">:$flops, DefaultValuedAttr<I64Attr, "0">:$bytes_moved);
  let assemblyFormat = [{
    $kernel $actor_name $phase $rate ` ` `(` $inputs `)` `->` `(` $outputs `)` (`scratch` `(` $scratch^ `)`)?
    (`inplace` $inplace^)? attr-dict
  }];
}

def Actor_CollectiveOp : Actor_UnitOp<"collective", [AttrSizedOperandSegments]> {
  let summary = "exchanges blocks with the members of a group";
  let description = [{
    The group is spanned by mesh axes; members are in mesh order. `elements` is
    the size of one block. When it has finished, every member has read its input.

    ```mlir
    %ar = actor.collective all_reduce by sum "fc1" backward step axes ["dp"] elements 30 : f32 (%g) -> (%r)
    ```

    **Constraints**
    - one input and one output
    - a monoid exactly for all_reduce and reduce_scatter
    - axes are those of the plan, at least one, none twice
  }];
  let arguments = (ins Actor_CollectiveAttr:$collective, OptionalAttr<Actor_MonoidAttr>:$monoid, StrAttr:$actor_name,
                       Actor_PhaseAttr:$phase, Actor_RateAttr:$rate, StrArrayAttr:$axes, I64Attr:$elements,
                       TypeAttr:$element_type,
                       Variadic<Actor_RegisterType>:$inputs, Variadic<Actor_RegisterType>:$outputs);
  let assemblyFormat = [{
    $collective (`by` $monoid^)? $actor_name $phase $rate `axes` $axes `elements` $elements `:` $element_type
    ` ` `(` $inputs `)` `->` `(` $outputs `)` attr-dict
  }];
  let extraClassDeclaration = [{
    /// Whether a group has ranks of this class and of `other`, a class of the
    /// same stage: their boxes meet on the axes that do not span the group.
    bool hasMembersIn(ClassOp other);
  }];
}

class Actor_PeerOp<string mnemonic> : Actor_UnitOp<mnemonic, [AttrSizedOperandSegments]> {
  dag common = (ins StrAttr:$actor_name, Actor_PhaseAttr:$phase, Actor_RateAttr:$rate, I64Attr:$peer_stage,
                    I64Attr:$channel, I64Attr:$elements, TypeAttr:$element_type,
                    Variadic<Actor_RegisterType>:$inputs, Variadic<Actor_RegisterType>:$outputs);
  let arguments = common;
}

def Actor_SendOp : Actor_PeerOp<"send"> {
  let summary = "gives a block to the rank with the same coordinates of another stage";
  let description = [{
    When it has finished, the peer has read the input.

    ```mlir
    %s = actor.send "relu" forward micro to 1 channel 0 elements 30 : f32 (%y)
    ```

    **Constraints**
    - one input, no output
    - the peer is another stage of the plan
  }];
  let assemblyFormat = [{
    $actor_name $phase $rate `to` $peer_stage `channel` $channel `elements` $elements `:` $element_type
    ` ` `(` $inputs `)` (`->` `(` $outputs^ `)`)? attr-dict
  }];
}

def Actor_RecvOp : Actor_PeerOp<"recv"> {
  let summary = "takes a block from the rank with the same coordinates of another stage";
  let description = [{
    ```mlir
    %r = actor.recv "relu" forward micro from 0 channel 0 elements 30 : f32 -> (%y)
    ```

    **Constraints**
    - no input, one output
    - the peer is another stage of the plan
  }];
  let assemblyFormat = [{
    $actor_name $phase $rate `from` $peer_stage `channel` $channel `elements` $elements `:` $element_type
    (` ` `(` $inputs^ `)`)? `->` `(` $outputs `)` attr-dict
  }];
}

def Actor_LoadOp : Actor_UnitOp<"load", [AttrSizedOperandSegments]> {
  let summary = "brings this rank's part of a tensor into a register";
  let description = [{
    The tensor is that of the output register.

    ```mlir
    %l = actor.load "x" forward micro -> (%x)
    ```

    **Constraints**
    - no input, one output, a register of a tensor
  }];
  let arguments = (ins StrAttr:$actor_name, Actor_PhaseAttr:$phase, Actor_RateAttr:$rate,
                       Variadic<Actor_RegisterType>:$inputs, Variadic<Actor_RegisterType>:$outputs);
  let assemblyFormat = "$actor_name $phase $rate (` ` `(` $inputs^ `)`)? `->` `(` $outputs `)` attr-dict";
}

def Actor_CopyOp : Actor_UnitOp<"copy", [AttrSizedOperandSegments]> {
  let summary = "copies a register";
  let description = [{
    ```mlir
    %c = actor.copy "w" update step (%v) -> (%w)
    ```

    **Constraints**
    - one input and one output of the same size
  }];
  let arguments = (ins StrAttr:$actor_name, Actor_PhaseAttr:$phase, Actor_RateAttr:$rate,
                       Variadic<Actor_RegisterType>:$inputs, Variadic<Actor_RegisterType>:$outputs);
  let assemblyFormat = "$actor_name $phase $rate ` ` `(` $inputs `)` `->` `(` $outputs `)` attr-dict";
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

def Actor_OrderOp : Actor_Op<"order", [HasParent<"ClassOp">, NoTerminator, SingleBlock]> {
  let summary = "the total order of one stream's firings in a step";
  let description = [{
    Made by `--flow-schedule`.

    ```mlir
    actor.order compute {
      actor.fire %fc micro_batch 0 at [0, 0, 128] after [#actor.wait<io 1>]
    }
    ```
  }];
  let arguments = (ins Actor_StreamAttr:$stream);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$stream attr-dict-with-keyword $body";
}

def Actor_FireOp : Actor_Op<"fire", [HasParent<"OrderOp">]> {
  let summary = "one firing of an actor";
  let description = [{
    `offsets` are arena offsets in bytes, one per register of the actor (inputs,
    outputs, scratch): of the instances that this firing touches; 0 for states.

    ```mlir
    actor.fire %fc micro_batch 2 at [0, 0, 128] after [#actor.wait<io 3>, #actor.wait<comm 2, steps_before = 1>]
    ```

    **Constraints**
    - one offset per register, aligned to 64 bytes and inside the arena
    - the micro-batch exists; 0 for actors of rate step
    - the actor belongs to the stream
    - it waits for other streams only
  }];
  let arguments = (ins Actor_ActorType:$actor, I64Attr:$micro_batch, DenseI64ArrayAttr:$offsets,
                       DefaultValuedAttr<Actor_WaitArrayAttr, "{}">:$waits);
  let assemblyFormat = "$actor `micro_batch` $micro_batch `at` $offsets (`after` $waits^)? attr-dict";
  let hasVerifier = 1;
}

#endif
