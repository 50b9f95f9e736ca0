// Passes that show what the rules derive.
#ifndef FLOW_RULES_PASSES_TD
#define FLOW_RULES_PASSES_TD

include "mlir/Pass/PassBase.td"

def PrintSignatures : Pass<"flow-print-signatures", "::mlir::ModuleOp"> {
  let summary = "prints every op's legal signatures as JSON";
  let description = [{
    Writes an array in program order to stdout, one object per op: its name, its
    location, the values it reads and makes, and its signatures for one mesh axis
    of any size. Destinations are operands too; inits and constants have no row.
    `"aligned": true` marks a row that holds only where shard borders fall on the
    units that the row before it spells.

    ```
    [{"op": "linalg.matmul", "loc": "fc1", "operands": ["%arg0", "%arg1", "%1"], "results": ["%2"],
      "signatures": [{"in": ["S(1)", "S(0)", "P(sum)"], "out": ["P(sum)"]} ]} ]
    ```

    `flow-opt` prints no module when it is asked for this pass.
  }];
  let dependentDialects = ["::flow::FlowDialect"];
}

#endif
