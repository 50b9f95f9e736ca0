"""Compares declared signatures with a table of proven ones.

The table (from brute force on 2 and 3 ranks, see proven.json) lists for each
tuple of input states which results are right. A declared row must be in it; a
proven row should be declared.
"""
import json
import os
import subprocess

import operators

SPELL = {"B": "B", "P": "P(sum)", "Pmax": "P(max)", "Pmin": "P(min)"}
DIMS = {  # of operators.py, from the shapes of the table
    "matmul": lambda s: (*s[0], s[1][1]), "gemm_bias": lambda s: (*s[0], s[1][1]),
    "batch_matmul": lambda s: (*s[0], s[1][2]), "matmul_grad_w": lambda s: (*s[0], s[1][1]),
    "attention_bhsd": lambda s: (*s[0], s[1][2]), "conv2d_3x3": lambda s: (*s[0], s[1][0]),
    "concat_0": lambda s: (*s[0], s[1][0]), "split_1": lambda s: (s[0][0], s[0][1] // 2),
    "slice_1_from2": lambda s: (s[0][0], s[0][1] - 2), "unflatten_1_heads": lambda s: (s[0][0], 4, s[0][1] // 4),
    "gather_rows_masked": lambda s: (*s[0], *s[1]), "embedding_grad_V12": lambda s: (*s[0], 12),
}
# Written here as a sum and a scale, which may be split; a mean of means may not.
SUM_AND_SCALE = {("global_avgpool", ("S(2)",)), ("global_avgpool", ("S(3)",)), ("reduce_mean_last_keep", ("S(1)",))}


def spelled(state):
    return SPELL.get(state) or f"S({state[1:]})"


def main():
    with open(os.path.join(os.path.dirname(__file__), "proven.json")) as file:
        table = json.load(file)
    text = ""
    for name, op in table.items():
        dims = DIMS.get(name, lambda s: s[0])(op["shapes"])
        text += operators.function(name, operators.TABLE[name][0], dims, (2,))[0]
    done = subprocess.run(["flow-opt", "--flow-print-signatures"], input=text, capture_output=True, text=True, check=True)
    proven = declared = contradicted = 0
    for (name, op), printed in zip(table.items(), json.loads(done.stdout)):
        right = {}
        for inputs, even, uneven in op["rules"]:
            right[tuple(spelled(s) for s in inputs)] = [
                None if alternatives is None else [{spelled(s) for s in a} for a in alternatives]
                for alternatives in (even, uneven)]
        found = {}
        for row in printed["signatures"]:
            found.setdefault(tuple(row["in"]), []).append(row)
        for inputs, alternatives in right.items():
            proven += 1
            if inputs in found:
                declared += 1
            else:
                print(f"not declared: {name} {inputs} -> {alternatives[0]}")
        for inputs, rows in found.items():
            if any("unit" in s for s in inputs) or sum(s[0] == "P" for s in inputs) > 2:
                continue  # the table does not try these
            for row in rows:
                if any("unit" in s for s in row["out"]):
                    continue
                ok = right.get(inputs, [None, None])[0 if row.get("aligned") else 1]
                if (name, inputs) in SUM_AND_SCALE and row["out"] == ["P(sum)"]:
                    continue
                if ok is None or any(s not in a for s, a in zip(row["out"], ok)):
                    contradicted += 1
                    print(f"contradicted: {name} {row}, proven: {right.get(inputs)}")
    print(f"operators: {len(table)}, proven rows: {proven}, declared: {declared}, contradicted: {contradicted}")


main()
