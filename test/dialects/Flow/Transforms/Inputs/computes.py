"""Placed programs of one compute each, for every signature that the compiler declares.

usage: computes.py PASS...: checks that the module after PASS... computes what the
global program does. A seeded sample; everything with FLOW_FULL=1.
"""
import itertools
import json
import os
import random
import subprocess
import sys

import numpy as np

from boxings import DTYPES, dist
from run_module import Module

SIZES = [0, 1, 2, 3, 4, 5, 7]


def tensor(shape, element="f32"):
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def fill(name, shape, value="0.0", element="f32"):
    return (f"%k{name} = arith.constant {value} : {element}\n%e{name} = tensor.empty() : {tensor(shape, element)}\n"
            f"%{name} = linalg.fill ins(%k{name} : {element}) outs(%e{name} : {tensor(shape, element)}) -> {tensor(shape, element)}\n")


def empty(name, shape, element="f32"):
    return f"%{name} = tensor.empty() : {tensor(shape, element)}\n"


def generic(maps, kinds, inputs, out, body, element="f32"):
    """`inputs`: (name, shape, element); `out`: (name, shape)."""
    loops = ", ".join(f"d{i}" for i in range(len(kinds)))
    maps = ", ".join(f"affine_map<({loops}) -> ({m})>" for m in maps)
    names = ", ".join(n for n, _, _ in inputs)
    types = ", ".join(tensor(s, e) for _, s, e in inputs)
    ins = f"ins({names} : {types}) " if inputs else ""
    arguments = ", ".join([f"%i{k}: {e}" for k, (_, _, e) in enumerate(inputs)] + [f"%o: {element}"])
    kinds = ", ".join(f'"{"reduction" if k == "r" else "parallel"}"' for k in kinds)
    return (f"%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {ins}"
            f"outs({out[0]} : {tensor(out[1], element)}) {{\n^bb0({arguments}):\n{body}\n}} -> {tensor(out[1], element)} loc(LOC)")


# Each program: random sizes -> ([argument shape, element], result shape, body). The
# main op makes %r at loc(LOC).
def matmul(m, n, k):
    return [((m, k), "f32"), ((k, n), "f32")], (m, n), fill("f", (m, n)) + (
        f"%r = linalg.matmul ins(%arg0, %arg1 : {tensor((m, k))}, {tensor((k, n))}) outs(%f : {tensor((m, n))}) -> {tensor((m, n))} loc(LOC)")


def batch_matmul(b, m, k):
    return [((b, m, k), "f32"), ((b, k, 3), "f32")], (b, m, 3), fill("f", (b, m, 3)) + (
        f"%r = linalg.batch_matmul ins(%arg0, %arg1 : {tensor((b, m, k))}, {tensor((b, k, 3))}) outs(%f : {tensor((b, m, 3))}) -> {tensor((b, m, 3))} loc(LOC)")


def matmul_into_argument(m, n, k):
    return [((m, k), "f32"), ((k, n), "f32"), ((m, n), "f32")], (m, n), (
        f"%r = linalg.matmul ins(%arg0, %arg1 : {tensor((m, k))}, {tensor((k, n))}) outs(%arg2 : {tensor((m, n))}) -> {tensor((m, n))} loc(LOC)")


def reduce_with(op, start):
    def program(m, n, k):
        return [((m, n, k), "f32")], (m, k), fill("f", (m, k), start) + (
            f"%r = linalg.reduce ins(%arg0 : {tensor((m, n, k))}) outs(%f : {tensor((m, k))}) dimensions = [1] (%in: f32, %acc: f32) {{\n"
            f"%q = arith.{op} %in, %acc : f32\nlinalg.yield %q : f32 }} loc(LOC)")
    program.__name__ = "reduce_" + op
    return program


def add(m, n, k):
    t = tensor((m, n))
    return [((m, n), "f32"), ((m, n), "f32")], (m, n), empty("e", (m, n)) + (
        f"%r = linalg.add ins(%arg0, %arg1 : {t}, {t}) outs(%e : {t}) -> {t} loc(LOC)")


def scale_by_bias(m, n, k):
    return [((m, n), "f32"), ((n,), "f32")], (m, n), empty("e", (m, n)) + generic(
        ["d0, d1", "d1", "d0, d1"], "pp", [("%arg0", (m, n), "f32"), ("%arg1", (n,), "f32")], ("%e", (m, n)),
        "%q = arith.mulf %i0, %i1 : f32\nlinalg.yield %q : f32")


def affine_of_partial(m, n, k):
    return [((m, n), "f32")], (m, n), empty("e", (m, n)) + generic(
        ["d0, d1", "d0, d1"], "pp", [("%arg0", (m, n), "f32")], ("%e", (m, n)),
        "%c = arith.constant 2.5 : f32\n%q = arith.mulf %i0, %c : f32\nlinalg.yield %q : f32")


def relu(m, n, k):
    return [((m, n), "f32")], (m, n), empty("e", (m, n)) + generic(
        ["d0, d1", "d0, d1"], "pp", [("%arg0", (m, n), "f32")], ("%e", (m, n)),
        "%c = arith.constant 0.0 : f32\n%p = arith.cmpf ogt, %i0, %c : f32\n%q = arith.select %p, %i0, %c : f32\nlinalg.yield %q : f32")


def causal_mask(m, n, k):
    return [((m, n), "f32")], (m, n), empty("e", (m, n)) + generic(
        ["d0, d1", "d0, d1"], "pp", [("%arg0", (m, n), "f32")], ("%e", (m, n)),
        "%a = linalg.index 0 : index\n%b = linalg.index 1 : index\n%p = arith.cmpi sge, %a, %b : index\n"
        "%c = arith.constant 0.0 : f32\n%q = arith.select %p, %i0, %c : f32\nlinalg.yield %q : f32")


def weighted_position_sum(m, n, k):
    return [((m, n), "f32")], (m,), fill("f", (m,)) + generic(
        ["d0, d1", "d0"], "pr", [("%arg0", (m, n), "f32")], ("%f", (m,)),
        "%a = linalg.index 1 : index\n%b = arith.index_cast %a : index to i32\n%c = arith.sitofp %b : i32 to f32\n"
        "%p = arith.mulf %i0, %c : f32\n%q = arith.addf %p, %o : f32\nlinalg.yield %q : f32")


def iota(m, n, k):
    return [((m, n), "f32")], (m, n), empty("e", (m, n)) + generic(
        ["d0, d1"], "pp", [], ("%e", (m, n)),
        "%a = linalg.index 0 : index\n%b = arith.index_cast %a : index to i32\n%c = arith.sitofp %b : i32 to f32\nlinalg.yield %c : f32")


def gather_rows(m, n, k):
    return [((m,), "i64"), ((7, n), "f32")], (m, n), empty("e", (m, n)) + generic(
        ["d0", "d0, d1"], "pp", [("%arg0", (m,), "i64")], ("%e", (m, n)),
        f"%a = arith.index_cast %i0 : i64 to index\n%b = linalg.index 1 : index\n%q = tensor.extract %arg1[%a, %b] : {tensor((7, n))}\nlinalg.yield %q : f32")


def transpose(m, n, k):
    return [((m, n, k), "f32")], (k, m, n), empty("e", (k, m, n)) + (
        f"%r = linalg.transpose ins(%arg0 : {tensor((m, n, k))}) outs(%e : {tensor((k, m, n))}) permutation = [2, 0, 1] loc(LOC)")


def broadcast(m, n, k):
    return [((n,), "f32")], (m, n), empty("e", (m, n)) + (
        f"%r = linalg.broadcast ins(%arg0 : {tensor((n,))}) outs(%e : {tensor((m, n))}) dimensions = [0] loc(LOC)")


def convolution(m, n, k):
    m, n, k = m, max(n, 1), max(k, 1)
    return [((m, 5, 4, k), "f32"), ((3, 2, k, n), "f32")], (m, 3, 3, n), fill("f", (m, 3, 3, n)) + (
        f"%r = linalg.conv_2d_nhwc_hwcf ins(%arg0, %arg1 : {tensor((m, 5, 4, k))}, {tensor((3, 2, k, n))}) outs(%f : {tensor((m, 3, 3, n))}) -> {tensor((m, 3, 3, n))} loc(LOC)")


def max_pooling(m, n, k):
    return [((m, 6, 8, n), "f32")], (m, 3, 4, n), fill("f", (m, 3, 4, n), "0xFF800000") + "%w = tensor.empty() : tensor<2x2xf32>\n" + (
        f"%r = linalg.pooling_nhwc_max {{strides = dense<2> : tensor<2xi64>}} ins(%arg0, %w : {tensor((m, 6, 8, n))}, tensor<2x2xf32>) outs(%f : {tensor((m, 3, 4, n))}) -> {tensor((m, 3, 4, n))} loc(LOC)")


def collapse(m, n, k):
    n, k = max(n, 1), max(k, 1)
    return [((m, n, k), "f32")], (m * n, k), (
        f"%r = tensor.collapse_shape %arg0 [[0, 1], [2]] : {tensor((m, n, k))} into {tensor((m * n, k))} loc(LOC)")


def expand(m, n, k):
    n, k = max(n, 1), max(k, 1)
    return [((m * n, k), "f32")], (m, n, k), (
        f"%r = tensor.expand_shape %arg0 [[0, 1], [2]] output_shape [{m}, {n}, {k}] : {tensor((m * n, k))} into {tensor((m, n, k))} loc(LOC)")


def pad(m, n, k):
    m, n = max(m, 1), max(n, 1)
    return [((m, n), "f32")], (m, n + 3), (
        f"%z = arith.constant 0.0 : f32\n%r = tensor.pad %arg0 low[0, 1] high[0, 2] {{\n^bb0(%i: index, %j: index):\ntensor.yield %z : f32\n}} : {tensor((m, n))} to {tensor((m, n + 3))} loc(LOC)")


def extract(m, n, k):
    m, n = max(m, 1), n + 2
    return [((m, n), "f32")], (m, n - 1), (
        f"%r = tensor.extract_slice %arg0[0, 1] [{m}, {n - 1}] [1, 1] : {tensor((m, n))} to {tensor((m, n - 1))} loc(LOC)")


def extract_row(m, n, k):
    m, n = m + 2, max(n, 1)
    return [((m, n), "f32")], (n,), (
        f"%r = tensor.extract_slice %arg0[1, 0] [1, {n}] [1, 1] : {tensor((m, n))} to {tensor((n,))} loc(LOC)")


def insert(m, n, k):
    m, n = max(m, 1), max(n, 1)
    return [((m, n), "f32"), ((m, n + 2), "f32")], (m, n + 2), (
        f"%r = tensor.insert_slice %arg0 into %arg1[0, 1] [{m}, {n}] [1, 1] : {tensor((m, n))} into {tensor((m, n + 2))} loc(LOC)")


def concat(m, n, k):
    m, n, k = max(m, 1), max(n, 1), max(k, 1)
    return [((m, n), "f32"), ((m, k), "f32")], (m, n + k), (
        f"%r = tensor.concat dim(1) %arg0, %arg1 : ({tensor((m, n))}, {tensor((m, k))}) -> {tensor((m, n + k))} loc(LOC)")


PROGRAMS = [matmul, batch_matmul, matmul_into_argument, reduce_with("addf", "0.0"), reduce_with("maximumf", "0xFF800000"),
            reduce_with("minimumf", "0x7F800000"), reduce_with("mulf", "1.0"), add, scale_by_bias, affine_of_partial,
            relu, causal_mask, weighted_position_sum, iota, gather_rows, transpose, broadcast, convolution, max_pooling,
            collapse, expand, pad, extract, extract_row, insert, concat]


def signatures(instances):
    """The declared rows of each instance: entries of its arguments and of its result."""
    text = ""
    for i, (arguments, result, body) in enumerate(instances):
        parameters = ", ".join(f"%arg{k}: {tensor(*a)}" for k, a in enumerate(arguments))
        text += f"func.func @f{i}({parameters}) -> {tensor(result)} {{\n{body.replace('LOC', f'{chr(34)}f{i}{chr(34)}')}\nreturn %r : {tensor(result)}\n}}\n"
    done = subprocess.run(["flow-opt", "--flow-print-signatures"], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    rows = [[] for _ in instances]
    for op in json.loads(done.stdout):
        if not op["loc"].startswith("f"):
            continue
        i = int(op["loc"][1:])
        for row in op["signatures"]:
            if row.get("aligned") or "exchange" in row:
                continue
            entries = ["B"] * len(instances[i][0])
            for name, entry in zip(op["operands"], row["in"]):
                if name.startswith("%arg"):
                    entries[int(name[4:])] = entry
            both = (tuple(entries), row["out"][0])
            if set(entries) == {"B"} and both[1][0] == "P":
                continue  # the destination would be partial, but it is an init here
            if both not in rows[i]:
                rows[i].append(both)
    return rows


def main():
    full = os.environ.get("FLOW_FULL") == "1"
    random.seed(11)
    instances, names = [], []
    for program in PROGRAMS:
        for _ in range(3 if full else 2):
            instances.append(program(*random.choices(SIZES, k=3)))
            names.append(program.__name__)
    cases = []
    for i, rows in enumerate(signatures(instances)):
        assert rows, names[i]
        for row in rows:
            for ranks in (1, 2, 3, 4, 5) if full else random.sample((2, 3, 4, 5), 1):
                cases.append((i, (ranks,), (row,)))
        pairs = list(itertools.product(rows, rows))
        for pair in pairs if full else random.sample(pairs, min(len(pairs), 3)):
            cases.append((i, random.choice([(2, 2), (2, 3), (3, 2)]), pair))
    if not full:
        cases = random.sample(cases, 160)
    rng = np.random.default_rng(0)
    wrong = 0
    for at in range(0, len(cases), 200):
        text, outputs, inputs = "", {}, {}
        for j, (i, sizes, rows) in enumerate(cases[at:at + 200]):
            arguments, result, body = instances[i]
            body = body.replace("LOC", f'"{names[i]}"')
            plain = [tensor(*a) for a in arguments]
            held = [dist(shape, element, sizes, [row[0][k] for row in rows]) for k, (shape, element) in enumerate(arguments)]
            out = dist(result, "f32", sizes, [row[1] for row in rows])
            parameters = ", ".join(f"%arg{k}: {t}" for k, t in enumerate(plain))
            text += f"func.func @g{j}({parameters}) -> {tensor(result)} {{\n{body}\nreturn %r : {tensor(result)}\n}}\n"
            text += f"func.func @f{j}({', '.join(f'%arg{k}: {t}' for k, t in enumerate(held))}) -> {out} {{\n"
            text += f"%y = flow.compute ({', '.join(f'%arg{k} : {t}' for k, t in enumerate(held))}) -> {out} {{\n^bb0({parameters}):\n"
            text += f"{body}\nflow.yield %r : {tensor(result)}\n}}\nreturn %y : {out}\n}}\n"
            outputs[f"g{j}"] = outputs[f"f{j}"] = [("f32", len(result))]
            inputs[f"f{j}"] = [rng.integers(0, 7, shape).astype(np.int64) if element == "i64"
                               else rng.standard_normal(shape).astype(DTYPES[element]) for shape, element in arguments]
        module = Module(text, sys.argv[1:], {k: [(np.float32, v[0][1])] for k, v in outputs.items()})
        for j, (i, sizes, rows) in enumerate(cases[at:at + 200]):
            (whole,) = module.call(f"g{j}", inputs[f"f{j}"])
            (parts,) = module.call(f"f{j}", inputs[f"f{j}"])
            if parts.shape != whole.shape or not np.allclose(parts, whole, rtol=1e-4, atol=1e-4, equal_nan=True):
                wrong += 1
                print("wrong:", names[i], [a[0] for a in instances[i][0]], sizes, rows)
    print(f"computes: {len(cases)}, wrong: {wrong}")


if __name__ == "__main__":
    main()
