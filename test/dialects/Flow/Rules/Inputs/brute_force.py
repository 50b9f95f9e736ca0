"""Brute force: every declared signature, in lockstep over all ranks, must give
the global result.

Meshes of 1 to 5 ranks and 2-d ones, sizes 0, 1, p-1, p, p+1 and primes. A seeded
sample; everything with FLOW_FULL=1.
"""
import itertools
import json
import os
import random
import subprocess
import sys

import numpy as np

import operators

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Transforms/Inputs"))
from run_module import Module  # noqa: E402

operators.WHOLE_SOFTMAX = False
FULL = os.environ.get("FLOW_FULL") == "1"
DTYPES = {"f32": np.float32, "i32": np.int32, "i64": np.int64}
SIZES = {1: [1, 3], 2: [0, 1, 2, 3, 5], 3: [0, 1, 2, 3, 4, 7], 4: [1, 3, 4, 5], 5: [0, 4, 5, 6, 7]}
MESHES = [(1,), (2,), (3,), (4,), (5,), (2, 2), (2, 3), (3, 2)]
WINDOWED = {"conv2d_3x3": (2, 3)}  # dims that windows need to be at least 3
# A mean over nothing, an argmax of nothing: not a number by definition.
NOT_EMPTY = {"argmax_last", "softmax_last", "softmax_grad", "attention_bhsd", "xent_sum", "reduce_max_0", "maxpool2",
             "batchnorm_train", "layernorm", "strided", "gather_table",
             "split_1", "slice_1_from2", "insert"}  # the last: upstream refuses empty slices


def dims_of(name, arity, p, rng):
    dims = [rng.choice(SIZES[min(p, 5)]) for _ in range(arity)]
    if name in NOT_EMPTY:
        dims = [max(1, d) for d in dims]
    for i in WINDOWED.get(name, ()):
        dims[i] = max(4, dims[i] + 2)
    if name == "maxpool2":
        dims[2:] = [2 * d for d in dims[2:]]
    return dims


def signatures(functions):
    text = "".join(operators.function(f"f{i}", build, dims, (2,))[0] for i, (build, dims) in enumerate(functions))
    done = subprocess.run(["flow-opt", "--flow-print-signatures"], input=text, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[:3000])
    return [[row for row in op["signatures"] if not row.get("aligned")] for op in json.loads(done.stdout)]


def sample(rng):
    """(operator, dims, mesh, one row per mesh axis)"""
    library = {**operators.TABLE, **operators.OTHERS}
    points = []
    for name, (build, arity) in library.items():
        for sizes in MESHES if FULL else rng.sample(MESHES, 3):
            for _ in range(6 if FULL else 1):
                points.append((name, build, dims_of(name, arity, max(sizes), rng), sizes))
    cases = []
    for (name, build, dims, sizes), rows in zip(points, signatures([(p[1], p[2]) for p in points])):
        combinations = list(itertools.product(rows, repeat=len(sizes)))
        if not FULL:
            combinations = rng.sample(combinations, min(len(combinations), 3))
        elif len(combinations) > 60:
            combinations = rng.sample(combinations, 60)
        cases += [(name, build, dims, sizes, combination) for combination in combinations]
    return cases


def value(shape, element, rng):
    if element[0] == "i":
        return rng.integers(0, max(1, min(shape, default=1)), shape).astype(DTYPES[element]) if shape else np.array(0, DTYPES[element])
    return (rng.integers(1, 9, shape) / 4 * rng.choice([-1, 1], shape)).astype(np.float32)


def main():
    rng = random.Random(11)
    cases = sample(rng)
    numbers = np.random.default_rng(3)
    wrong = 0
    chunk = 150
    for at in range(0, len(cases), chunk):
        placed, reference, outputs = "", "", {}
        arguments = {}
        for i, (name, build, dims, sizes, rows) in enumerate(cases[at:at + chunk]):
            n = len(rows[0]["in"]), len(rows[0]["out"])
            ins = [[row["in"][k] for row in rows] for k in range(n[0])]
            outs = [[row["out"][k] for row in rows] for k in range(n[1])]
            text, parameters, results = operators.function(f"f{i}", build, dims, sizes, ins, outs)
            placed += text
            reference += operators.function(f"r{i}", build, dims, (1,))[0]
            outputs[f"f{i}"] = outputs[f"r{i}"] = [(DTYPES[v[2]], len(v[1])) for v in results]
            arguments[i] = [value(a[1], a[2], numbers) for a in parameters]
        module = Module(placed + reference, ["--flow-verify-distribution", "--flow-lockstep"], outputs)
        for i, (name, build, dims, sizes, rows) in enumerate(cases[at:at + chunk]):
            got, want = module.call(f"f{i}", arguments[i]), module.call(f"r{i}", arguments[i])
            for g, w in zip(got, want):
                if g.shape != w.shape or not np.allclose(g, w, rtol=1e-4, atol=1e-5, equal_nan=True):
                    wrong += 1
                    print("wrong:", name, dims, sizes, [(r["in"], r["out"]) for r in rows], "got", g.ravel()[:6], "expected", w.ravel()[:6])
                    break
    print(f"signatures: {len(cases)}, wrong: {wrong}")


main()
