// The actor dialect: what each rank class executes, in which order, on which bytes.
#ifndef ACTOR_DIALECT_TD
#define ACTOR_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/Utils.td"

def Actor_Dialect : Dialect {
  let name = "actor";
  let cppNamespace = "::flow::actor";
  let summary = "actors, registers, orders and waits of the ranks of a job";
  let description = [{
    A *plan* is what the ranks of one mesh execute. Ranks with the same stage and
    the same local shapes are one *class*; everything is stored per class, so a
    plan does not grow with the number of ranks.

    An *actor* is a unit of execution: a kernel, a collective, a load or a copy.
    It fires once per micro-batch or once per step on one *stream* (a thread of
    the rank: compute, comm or io). A *register* is what an actor writes and
    others read; a register of rate `micro` has an instance per micro-batch.
    `actor.carried` names the instance of the micro-batch before.

    After scheduling, each class has an `actor.order` per stream: the total order
    of firings of one step, each with the arena offset of every register
    instance it touches and with the firings of other streams it waits for.
    Nothing else decides what happens at run time.

    Read by a step-rate actor, a register of rate `micro` is its last instance.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Actor_Enum<string name, string text, list<string> cases>
    : I32EnumAttr<name, text, !foreach(i, !range(!size(cases)),
        I32EnumAttrCase<snakeCaseToCamelCase<cases[i]>.ret, i, cases[i]>)> {
  let cppNamespace = "::flow::actor";
  let genSpecializedAttr = 0;
}

class Actor_EnumAttr<EnumAttrInfo info, string mnemonic_> : EnumAttr<Actor_Dialect, info, mnemonic_> {
  let summary = info.summary;
  let description = "```mlir\n#actor." # mnemonic_ # "<" # info.enumerants[0].str # ">\n```\n";
  let assemblyFormat = "$value";
}

// The numbers are those of include/flow/Runtime/abi.h.
def Actor_Phase : Actor_Enum<"Phase", "the part of a training step", ["forward", "backward", "update", "other"]>;
def Actor_PhaseAttr : Actor_EnumAttr<Actor_Phase, "phase">;
def Actor_Stream : Actor_Enum<"Stream", "a thread of a rank", ["compute", "comm", "io"]>;
def Actor_StreamAttr : Actor_EnumAttr<Actor_Stream, "stream">;
def Actor_Rate : Actor_Enum<"Rate", "how often an actor fires", ["micro", "step"]>;
def Actor_RateAttr : Actor_EnumAttr<Actor_Rate, "rate">;
def Actor_Monoid : Actor_Enum<"Monoid", "how blocks combine", ["sum", "max", "min", "prod"]>;
def Actor_MonoidAttr : Actor_EnumAttr<Actor_Monoid, "monoid">;
def Actor_Collective : Actor_Enum<"Collective", "an exchange between the members of a group",
    ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]>;
def Actor_CollectiveAttr : Actor_EnumAttr<Actor_Collective, "collective">;
def Actor_TensorKind : Actor_Enum<"TensorKind", "what a value exchanged with the world is",
    ["input", "label", "scalar", "output", "loss", "correct"]>;
def Actor_TensorKindAttr : Actor_EnumAttr<Actor_TensorKind, "tensor_kind">;

def Actor_WaitAttr : AttrDef<Actor_Dialect, "Wait"> {
  let mnemonic = "wait";
  let summary = "what a firing waits for";
  let description = [{
    The first `count` firings of `stream` must have finished: of the same step,
    or of the step that lies `steps_before` before. A `count` of 0 asks that all
    earlier steps of that stream have finished.

    ```mlir
    #actor.wait<io 3>  #actor.wait<comm 2, steps_before = 1>
    ```

    **Constraints**
    - the count is not negative, and positive within the same step
    - at most two steps before
  }];
  let parameters = (ins EnumParameter<Actor_Stream>:$stream, "int64_t":$count,
                        DefaultValuedParameter<"int64_t", "0">:$steps_before);
  let assemblyFormat = "`<` $stream $count (`,` `steps_before` `=` $steps_before^)? `>`";
  let genVerifyDecl = 1;
}
def Actor_WaitArrayAttr : TypedArrayAttrBase<Actor_WaitAttr, "what a firing waits for">;

class Actor_Type<string name, string mnemonic_, string what> : TypeDef<Actor_Dialect, name> {
  let mnemonic = mnemonic_;
  let summary = what;
  let description = "```mlir\n!actor." # mnemonic_ # "\n```\n";
}
def Actor_RegisterType : Actor_Type<"Register", "register", "a buffer with one producer">;
def Actor_ActorType : Actor_Type<"Actor", "actor", "a unit of execution">;
def Actor_TensorType : Actor_Type<"Tensor", "tensor", "a value that a program exchanges with the world">;
def Actor_StateType : Actor_Type<"State", "state", "a tensor that lives as long as the job">;
def Actor_ExchangedType : AnyTypeOf<[Actor_TensorType, Actor_StateType], "a tensor or a state">;

#endif
