#!/usr/bin/env python3
"""Writes an ONNX MLP: make_mlp.py OUT.onnx INPUTS WIDTH.. (relu between layers).

Layer k is named fc<k> with parameters fc<k>.weight [out, in] and fc<k>.bias."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main():
    out, sizes = sys.argv[1], [int(s) for s in sys.argv[2:]]
    rng = np.random.default_rng(7)
    nodes, initializers, value = [], [], "x"
    for k, (n_in, n_out) in enumerate(zip(sizes, sizes[1:]), 1):
        weight = rng.uniform(-1, 1, (n_out, n_in)).astype(np.float32) / np.float32(np.sqrt(max(n_in, 1)))
        bias = rng.uniform(-0.1, 0.1, n_out).astype(np.float32)
        initializers += [numpy_helper.from_array(weight, f"fc{k}.weight"), numpy_helper.from_array(bias, f"fc{k}.bias")]
        last = k == len(sizes) - 1
        result = "y" if last else f"h{k}"
        nodes.append(helper.make_node("Gemm", [value, f"fc{k}.weight", f"fc{k}.bias"], [result], name=f"fc{k}", transB=1))
        if not last:
            nodes.append(helper.make_node("Relu", [result], [f"a{k}"], name=f"relu{k}"))
            value = f"a{k}"
    graph = helper.make_graph(
        nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", sizes[0]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", sizes[-1]])], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, out)


if __name__ == "__main__":
    main()
