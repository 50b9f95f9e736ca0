// The flow dialect: meshes, SBP signatures, distributed types, and the ops that
// import, request and decide a distribution.
#ifndef FLOW_DIALECT_TD
#define FLOW_DIALECT_TD

include "mlir/IR/OpBase.td"

def Flow_Dialect : Dialect {
  let name = "flow";
  let cppNamespace = "::flow";
  let summary = "global programs and their distribution over a mesh of ranks";
  let description = [{
    One global program is written as if for one device. A *request* constrains
    ordinary tensors (`flow.constrain`); a *decision* moves each op into a
    `flow.compute` over `!flow.dist` values and puts all movement of data into
    `flow.boxing`. Neither communicates by itself: localization turns boxings
    into `ccl` ops.

    Functions of a program carry these argument and result attributes:

    | attribute | on | meaning |
    |---|---|---|
    | `flow.name` (string) | arguments, results | the model's name of the value |
    | `flow.kind` (string) | arguments | `"state"`, `"input"`, `"label"` or `"scalar"` (set at run time, such as the learning rate) |
    | `flow.kind` (string) | results | `"state"`, `"output"`, `"loss"`, `"correct"` or `"gradient"` |
    | `flow.initial` (symbol) | state arguments | the `ml_program.global` with the initial value |
    | `flow.tied` (i64) | state results | number of the argument that the result replaces in the next step |
    | `flow.slot_of` (string) | state arguments | the parameter whose optimizer slot it is |
    | `flow.frozen` (unit) | state arguments, globals | training leaves it alone (running statistics) |
    | `flow.default` (symbol) | input arguments | the `ml_program.global` with the value that an absent input has |
    | `flow.default` (f32) | scalar arguments | the value unless one is set at run time |

    Ops of a program may carry `flow.phase = #flow.phase<backward>` or `<update>`
    and the unit attribute `flow.stop_gradient` (its operands get no gradient from
    it). Both are discardable: losing them costs speed, never the meaning.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

class Flow_Op<string mnemonic, list<Trait> traits = []>
    : Op<Flow_Dialect, mnemonic, traits>;

#endif
