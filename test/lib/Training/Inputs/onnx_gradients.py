#!/usr/bin/env python3
"""Gradients of legalized ONNX operators, checked by differences in f64.

One model per row: operator, attributes, shapes of its float inputs (all are differentiated) and further
constant inputs. The result is summed.
"""
import math
import re
import shutil
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import native

i64 = lambda *v: np.array(v, np.int64)
ROWS = [
    ("Gemm", {"transB": 1, "alpha": 0.5, "beta": 2.0}, [(3, 5), (4, 5), (4,)], []),
    ("MatMul", {}, [(2, 3, 4), (4, 5)], []),
    ("MatMul", {}, [(2, 1, 3, 4), (3, 4, 2)], []),
    ("Conv", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
     [(2, 3, 7, 7), (4, 3, 3, 3), (4,)], []),
    ("Conv", {"kernel_shape": [3, 3], "group": 2, "dilations": [2, 2]},
     [(2, 4, 7, 7), (6, 2, 3, 3)], []),
    ("Conv", {"kernel_shape": [3]}, [(2, 3, 9), (4, 3, 3)], []),
    ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, [(2, 3, 6, 6)], []),
    ("MaxPool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
     [(1, 2, 7, 7)], []),
    ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
     [(1, 2, 7, 7)], []),
    ("GlobalAveragePool", {}, [(2, 3, 4, 5)], []),
    ("GlobalMaxPool", {}, [(2, 3, 4, 5)], []),
    ("BatchNormalization", {}, [(3, 4, 5), (4,), (4,), (4,), ("positive", 4)], []),
    ("LayerNormalization", {"axis": -1}, [(3, 4, 5), (5,), (5,)], []),
    ("InstanceNormalization", {}, [(2, 3, 6), (3,), (3,)], []),
    ("GroupNormalization", {"num_groups": 2, "stash_type": 11}, [(2, 4, 5), (4,), (4,)], []),
    ("Softmax", {"axis": 1}, [(3, 4, 5)], []),
    ("LogSoftmax", {"axis": -1}, [(3, 5)], []),
    *[(op, {}, [(3, 5)], []) for op in (
        "Relu", "LeakyRelu", "Elu", "Selu", "Sigmoid", "Tanh", "Softplus", "Softsign", "HardSigmoid",
        "HardSwish", "Gelu", "Mish", "Exp", "Erf", "Sin", "Cos", "Atan", "Abs", "Neg", "Floor",
        "Identity", "Flatten", "ReduceSumSquare", "ReduceLogSumExp")],
    *[(op, {}, [("positive", 3, 5)], []) for op in ("Sqrt", "Log", "Reciprocal", "ReduceL1",
                                                    "ReduceL2", "ReduceLogSum")],
    ("PRelu", {}, [(3, 4, 5), (4, 1)], []),
    ("Clip", {}, [(3, 5)], [np.array(-0.5), np.array(0.5)]),
    *[(op, {}, [(3, 1, 5), (4, 5)], []) for op in ("Add", "Sub", "Mul", "Max", "Min", "Mean")],
    ("Div", {}, [(3, 1, 5), ("positive", 4, 5)], []),
    ("Pow", {}, [("positive", 3, 5), (3, 5)], []),
    ("Where", {}, [(3, 5), (5,)], ["condition"]),
    ("ReduceSum", {}, [(3, 4, 5)], [i64(1)]),
    ("ReduceMean", {"axes": [0, 2]}, [(3, 4, 5)], []),
    ("ReduceMax", {"axes": [1]}, [(3, 4, 5)], []),
    ("ReduceMin", {"axes": [1], "keepdims": 0}, [(3, 4, 5)], []),
    ("Reshape", {}, [(3, 4, 5)], [i64(2, -1, 5)]),
    ("Transpose", {"perm": [2, 0, 1]}, [(3, 4, 5)], []),
    ("Concat", {"axis": 1}, [(3, 4), (3, 2), (3, 5)], []),
    ("Slice", {}, [(6, 7)], [i64(1, 6), i64(5, 0), i64(0, 1), i64(2, -2)]),
    ("Pad", {}, [(3, 4)], [i64(1, 0, 2, 1), np.array(0.3)]),
    ("Pad", {"mode": "reflect"}, [(4, 5)], [i64(1, 2, 2, 1)]),
    ("Pad", {"mode": "edge"}, [(3, 4)], [i64(1, 2, 2, 1)]),
    ("Gather", {"axis": 0}, [(6, 5)], [i64(0, 2, 2, -1)]),
    ("Gather", {"axis": 1}, [(3, 6, 2)], [np.array([[0, 5], [3, 3]], np.int64)]),
    ("GatherElements", {"axis": 1}, [(3, 4)], [np.array([[0, 3], [1, 1], [2, 0]], np.int64)]),
    ("GatherND", {}, [(3, 4, 2)], [np.array([[0, 3], [2, 2], [0, 3]], np.int64)]),
    ("Expand", {}, [(3, 1)], [i64(2, 3, 4)]),
    ("Tile", {}, [(2, 3)], [i64(2, 3)]),
    ("Squeeze", {}, [(3, 1, 5)], [i64(1)]),
    ("Unsqueeze", {}, [(3, 5)], [i64(1)]),
    ("Split", {"num_outputs": 1, "axis": 0}, [(4, 3)], []),
    ("CumSum", {}, [(3, 5)], [np.array(1, np.int64)]),
    ("DepthToSpace", {"blocksize": 2}, [(1, 8, 2, 3)], []),
]


def model(row, rng):
    op, attributes, shapes, constants = row
    inputs, infos, initializers, values = [], [], [], []
    for i, shape in enumerate(shapes):
        positive = shape[0] == "positive"
        shape = shape[1:] if positive else shape
        v = rng.standard_normal(shape)
        values.append(np.abs(v) + 0.5 if positive else v)
        inputs.append(f"a{i}")
        infos.append(helper.make_tensor_value_info(f"a{i}", TensorProto.DOUBLE, shape))
    for i, c in enumerate(constants):
        if isinstance(c, str) and c == "":
            inputs.append("")
            continue
        if isinstance(c, str):
            c = rng.random((3, 5)) < 0.5
            inputs.insert(0, f"c{i}")
        else:
            inputs.append(f"c{i}")
        initializers.append(numpy_helper.from_array(c, f"c{i}"))
    node = helper.make_node(op, inputs, ["y"], op.lower(), **attributes)
    opset = 18 if "axes" not in attributes else 13
    opset = 21 if op in ("GroupNormalization", "Gelu", "Mish") else opset
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name="y")], initializers)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    m = onnx.shape_inference.infer_shapes(m)
    return m, values


def legalize(row, name, path):
    """The function of one model, its arguments, and which of them are differentiated."""
    m, values = model(row, np.random.default_rng(5))
    onnx.save(m, path)
    text = native.run(["flow-translate", "--import-onnx", path])
    text = native.run(["flow-opt", "--flow-infer-shapes", "--flow-legalize-onnx", "--canonicalize",
                       "--flow-globals-to-arguments", "--cse", "--mlir-print-local-scope"],
                      input=text)
    text = re.sub(r"ml_program.global .*", "", text)
    text = text[text.index("func.func"):text.rindex("}")].replace("@main", "@" + name)
    header = text[:text.index("\n")]
    constants = {t.name: numpy_helper.to_array(t) for t in m.graph.initializer}
    names = re.findall(r'flow.name = "(\w+)"', header.split("->")[0])
    arguments = [constants[n] if n in constants else values[int(n[1:])] for n in names]
    return text, arguments, [i for i, n in enumerate(names) if n not in constants]


def check(library, forward, name, arguments, wrt):
    rng = np.random.default_rng(6)
    u = {i: rng.standard_normal(arguments[i].shape) for i in wrt}
    g = library.call(name, *arguments)[1:]
    want = sum(float(np.vdot(a, u[i])) for a, i in zip(g, wrt, strict=True))
    error = math.inf
    for h in (1e-6, 1e-5, 1e-7):  # a kink within one step is not within all
        ahead, behind = [forward.call(name, *[a + s * h * u[i] if i in u else a
                                              for i, a in enumerate(arguments)])[0].sum()
                         for s in (1, -1)]
        error = min(error, abs((ahead - behind) / (2 * h) - want) / (1 + abs(want)))
    return error


def main():
    if not shutil.which("flow-translate"):
        print("skipped: no flow-translate here")
        return 0
    rows = [r for r in ROWS if not sys.argv[1:] or r[0] in sys.argv[1:]]
    bad, cases = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        for i, row in enumerate(rows):
            name = f"f{i}_{row[0]}"
            cases[name] = legalize(row, name, f"{folder}/m.onnx")
        text = "".join(c[0] for c in cases.values())
        passes = []
        for name, (_, arguments, wrt) in cases.items():
            names = ",".join(re.findall(r'flow.name = "(a\d+)"', re.search(
                rf"@{name}\(.*", text)[0].split("->")[0]))
            passes.append(f"flow-differentiate{{function={name} of=y wrt={names}}}")
        pipeline = f"builtin.module({','.join(passes)},flow-lower-scatter-windows,canonicalize)"
        backward = native.run(["flow-opt", "--pass-pipeline=" + pipeline], input=text)
        library = native.Library(backward, folder + "/backward")
        forward = native.Library(native.run(["flow-opt"], input=text), folder + "/forward")
        for name, (_, arguments, wrt) in cases.items():
            error = check(library, forward, name, arguments, wrt)
            ok = error < 1e-6
            bad += not ok
            print(f"{'ok  ' if ok else 'FAIL'} {name}: {error:.1e}")
    print(f"{len(rows) - bad} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
