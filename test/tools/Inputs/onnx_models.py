"""relu.onnx, unsupported.onnx and in.npz, into a folder."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

out = sys.argv[1]


def save(name, nodes, y_type, y_shape):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    graph = helper.make_graph(nodes, "g", [x], [helper.make_tensor_value_info("y", y_type, y_shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, f"{out}/{name}.onnx")


node = helper.make_node
save("relu", [node("Relu", ["x"], ["y"], name="r")], TensorProto.FLOAT, ["N", 4])
save(
    "unsupported",
    [node("Relu", ["x"], ["a"], name="r"), node("NonZero", ["a"], ["b"], name="where"), node("Unique", ["b"], ["y"], name="kinds")],
    TensorProto.INT64,
    None,
)
np.savez(f"{out}/in.npz", x=np.arange(12, dtype=np.float32).reshape(3, 4))
