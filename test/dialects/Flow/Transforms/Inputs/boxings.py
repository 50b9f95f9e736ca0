"""Placed programs of one boxing each: every pair of SBP entries, uneven and empty shards.

usage: boxings.py PASS...: every fourth goes to another stage; checks that the module after PASS... is the identity.
A seeded sample; everything with FLOW_FULL=1.
"""
import itertools
import os
import random
import sys

import numpy as np

from run_module import Module

DTYPES = {"f32": np.float32, "i64": np.int64}
SHAPES = [(5, 3), (4, 6), (1, 7), (0, 3), (2, 1)]


def mesh(sizes, stage=0):
    axes = ", ".join(f'"a{i}" = {n}' for i, n in enumerate(sizes))
    return f'#flow.mesh<"m", [{axes}]{f", stage = {stage}" if stage else ""}>'


def dist(shape, element, sizes, sbp, stage=0):
    return f"!flow.dist<{''.join(f'{n}x' for n in shape)}{element}, {mesh(sizes, stage)}, [{', '.join(sbp)}]>"


def cases():
    one = [(p,) for p in (1, 2, 3, 4)]
    for sizes in one:
        for a, b in itertools.product(["S(0)", "S(1)", "B", "P(sum)", "P(max)"], repeat=2):
            yield sizes, (a,), (b,)
    for sizes in [(2, 2), (2, 3)]:
        entries = list(itertools.product(["S(0)", "S(1)", "B", "P(sum)"], repeat=2))
        for a, b in itertools.product(entries, repeat=2):
            yield sizes, a, b
    # units, nested monoids, three axes
    for sizes, a, b in [
        ((3,), ("S(0, unit = 2)",), ("S(0)",)),
        ((3,), ("S(0)",), ("S(0, unit = 2)",)),
        ((2,), ("S(0, unit = 3)",), ("B",)),
        ((2,), ("P(sum)",), ("S(0, unit = 2)",)),
        ((2, 2), ("P(max)", "P(sum)"), ("B", "B")),
        ((2, 2), ("P(sum)", "P(max)"), ("S(0)", "S(0)")),
        ((2, 2), ("B", "P(sum)"), ("P(prod)", "P(sum)")),
        ((2, 2), ("B", "B"), ("P(max)", "P(sum)")),
        ((2, 3), ("S(0, unit = 2)", "S(0)"), ("S(1)", "B")),
        ((2, 3), ("P(sum)", "P(sum)"), ("S(0, unit = 2)", "S(0)")),
        ((2, 1, 3), ("S(0)", "P(sum)", "S(0)"), ("S(1)", "S(0)", "B")),
        ((2, 2, 2), ("P(sum)", "S(0)", "P(sum)"), ("S(0)", "S(0)", "S(0)")),
        ((2, 2, 2), ("S(0)", "S(0)", "S(0)"), ("S(1)", "S(1)", "S(1)")),
        ((2, 2, 2), ("S(0)", "S(1)", "S(0)"), ("S(1)", "S(0)", "S(1)")),
    ]:
        yield sizes, a, b


def main():
    full = os.environ.get("FLOW_FULL") == "1"
    random.seed(7)
    chosen = [(c, s, "f32") for c in cases() for s in SHAPES]
    if not full:
        chosen = random.sample(chosen, 100) + [(c, (5, 3), "f32") for c in list(cases())[-14:]]
    chosen += [(c, s, "i64") for c, s, _ in random.sample(chosen, 12)]
    rng = np.random.default_rng(0)
    wrong = 0
    for at in range(0, len(chosen), 200):
        text, outputs, inputs = "", {}, {}
        for i, ((sizes, a, b), shape, element) in enumerate(chosen[at:at + 200]):
            x, y = dist(shape, element, sizes, a), dist(shape, element, sizes, b, stage=i % 4 // 3)
            text += f"func.func @f{i}(%x: {x}) -> {y} {{\n  %y = flow.boxing %x : {x} -> {y}\n  return %y : {y}\n}}\n"
            outputs[f"f{i}"] = [(DTYPES[element], 2)]
            inputs[f"f{i}"] = rng.integers(-9, 9, shape).astype(DTYPES[element])
        module = Module(text, sys.argv[1:], outputs)
        for (case, shape, element), name in zip(chosen[at:at + 200], outputs):
            (y,) = module.call(name, [inputs[name]])
            if y.shape != shape or not np.array_equal(y, inputs[name]):
                wrong += 1
                print("wrong:", *case, shape, element)
    print(f"boxings: {len(chosen)}, wrong: {wrong}")


if __name__ == "__main__":
    main()
