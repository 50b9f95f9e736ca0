"""Writes small good and bad ONNX models into a folder: make_models.py FOLDER"""
import os, sys
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper

os.makedirs(sys.argv[1], exist_ok=True)
os.chdir(sys.argv[1])
node = helper.make_node


def value(name, dtype=TensorProto.FLOAT, shape=("N", 3)):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, weights=(), opset=17, ir=8, domains=(), functions=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(w, n) for n, w in weights])
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir, functions=list(functions))


def save(name, *args, **kwargs):
    onnx.save(model(*args, **kwargs), name)


def write(name, data):
    with open(name, "wb") as file:
        file.write(data)


# Good ones.
r = np.random.RandomState(7)
weights = [("fc1.weight", r.randn(5, 7).astype("f")), ("fc1.bias", r.randn(5).astype("f")),
           ("fc2.weight", r.randn(3, 5).astype("f")), ("fc2.bias", r.randn(3).astype("f"))]
mlp_nodes = [node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["h"], name="fc1", transB=1),
             node("Relu", ["h"], ["a"]),
             node("Gemm", ["a", "fc2.weight", "fc2.bias"], ["y"], name="fc2", transB=1)]
mlp = model(mlp_nodes, [value("x", shape=("N", 7))], [value("y")], weights)
onnx.save(mlp, "mlp.onnx")
onnx.save(mlp, "external.onnx", save_as_external_data=True, location="external.data", size_threshold=0)
# Weights that are inputs, too: by the old rule, and as defaults.
inputs = [value("x", shape=("N", 7))] + [value(n, shape=w.shape) for n, w in weights]
save("old.onnx", mlp_nodes, inputs, [value("y")], weights, opset=8, ir=3)
save("default.onnx", mlp_nodes, inputs[:2], [value("y")], weights)
# floats in float_data are contiguous in the file as well
packed = onnx.ModelProto()
packed.CopyFrom(mlp)
packed.graph.initializer[0].CopyFrom(
    helper.make_tensor("fc1.weight", TensorProto.FLOAT, (5, 7), weights[0][1].flatten().tolist()))
onnx.save(packed, "packed.onnx")
twice = helper.make_function("my", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])],
                             [helper.make_opsetid("", 17)])
save("function.onnx", [node("Twice", ["x"], ["y"], domain="my", name="t")], [value("x")], [value("y")],
     domains=["my"], functions=[twice])
# A shape read from the input, an optional operand, a slice of a symbolic batch.
save("dims.onnx", [node("Shape", ["x"], ["s"], name="shape"), node("Gather", ["s", "zero"], ["n"], name="batch"),
                   node("Concat", ["n", "rest"], ["new"], axis=0, name="new"), node("Reshape", ["x", "new"], ["r"], name="flat"),
                   node("Clip", ["r", "", "six"], ["y"], name="clip")],
     [value("x", shape=("B", 2, "T"))], [value("y", shape=("B", None))],
     [("zero", np.array([0])), ("rest", np.array([-1])), ("six", np.array(6, "f"))])

# Bad ones.
relu = [node("Relu", ["x"], ["y"], name="n1")]
save("cyclic.onnx", [node("Add", ["x", "b"], ["a"], name="n1"), node("Relu", ["a"], ["b"], name="n2")],
     [value("x")], [value("b")])
save("undefined.onnx", [node("Add", ["x", "q"], ["y"], name="n1")], [value("x")], [value("y")])
save("unknown.onnx", [node("FusedConv", ["x"], ["a"], name="n1", domain="com.microsoft"),
                      node("NonMaxSuppression", ["a", "a"], ["c"], name="n2"), node("Bogus", ["x"], ["d"], name="n3"),
                      node("Relu", ["x"], ["e"], name="n4", slope=1)],
     [value("x")], [value("c"), value("d"), value("e")], domains=["com.microsoft"])
save("strings.onnx", [node("Identity", ["x"], ["y"], name="n1")], [value("x", TensorProto.STRING)],
     [value("y", TensorProto.STRING)])
save("shapes.onnx", [node("Add", ["x", "w"], ["y"], name="n1")], [value("x")], [value("y")], [("w", np.zeros(4, "f"))])
save("dtypes.onnx", [node("Add", ["x", "w"], ["y"], name="n1")], [value("x")], [value("y")], [("w", np.zeros(3))])
save("opset6.onnx", relu, [value("x")], [value("y")], opset=6, ir=3)
save("twice.onnx", relu + [node("Tanh", ["x"], ["y"], name="n2")], [value("x")], [value("y")])
recursive = helper.make_function("my", "F", ["a"], ["b"], [node("F", ["a"], ["b"], domain="my")],
                                 [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)])
save("recursive.onnx", [node("F", ["x"], ["y"], domain="my", name="n1")], [value("x")], [value("y")], domains=["my"],
     functions=[recursive])
write("truncated.onnx", mlp.SerializeToString()[:150])
write("empty.onnx", b"")
write("text.onnx", b"no model at all " * 4)


def external(name, **changes):
    changed = onnx.load("external.onnx", load_external_data=False)
    for entry in changed.graph.initializer[0].external_data:
        entry.value = changes.get(entry.key, entry.value)
    write(name, changed.SerializeToString())


external("missing_file.onnx", location="nowhere.data")
external("upwards.onnx", location="../external.data")
external("absolute.onnx", location=os.path.abspath("external.data"))
external("beyond.onnx", offset="1000000")
external("short.onnx", length="4")
external("negative.onnx", offset="-4")
if not os.path.lexists("link.data"):
    os.symlink("external.data", "link.data")
external("symlink.onnx", location="link.data")
