#!/usr/bin/env python3
"""Trains the two MNIST examples with torch and writes what flow must reproduce.

    make_goldens.py DIR    DIR holds f32/ and f64/, f32-1/ and f32-2/ as written by
                           examples/mnist/make_mnist.py (--dtype, --seed 0, 1, 2)

Writes mlp.golden.npz (float32) and lenet.golden.npz (float64) beside this file:
SGD with momentum 0.9, batches of 64 in file order, an epoch is the 62 full ones.
    losses            the first 20, each before its update
    names             of the parameters, in the order of the model
    start.norms, start.projections      gradients of the first batch at the start: [P], [P, 8]
    epoch.norms, epoch.projections      gradients of the first batch after one epoch
    weights.norms, weights.projections  the parameters after one epoch
    start.NAME, epoch.NAME              whole gradients of parameters of at most 128 elements
    epoch.eval        mean loss and number of hits on the test set after one epoch
    epochs, accuracies                  of runs with seeds 0, 1, 2 in float32
"""
import pathlib
import sys

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from golden_projection import project

BATCH, EPOCHS, MOMENTUM = 64, 5, 0.9


def load(folder, model):
    graph = onnx.load(folder / f"{model}.onnx").graph
    weights = {t.name: torch.tensor(numpy_helper.to_array(t).copy(), requires_grad=True)
               for t in graph.initializer}
    data = []
    for name in ("mnist.npz", "mnist-test.npz"):
        with np.load(folder / name) as z:
            data.append((torch.tensor(z["x"]), torch.tensor(z["label"])))
    return weights, *data


def mlp(w, x):
    return F.linear(torch.relu(F.linear(x, w["fc1.weight"], w["fc1.bias"])),
                    w["fc2.weight"], w["fc2.bias"])


def lenet(w, x):
    x = x.reshape(-1, 1, 28, 28)
    x = F.max_pool2d(torch.relu(F.conv2d(x, w["conv1.weight"], w["conv1.bias"], padding=2)), 2)
    x = F.max_pool2d(torch.relu(F.conv2d(x, w["conv2.weight"], w["conv2.bias"])), 2)
    x = torch.relu(F.linear(x.flatten(1), w["fc1.weight"], w["fc1.bias"]))
    x = torch.relu(F.linear(x, w["fc2.weight"], w["fc2.bias"]))
    return F.linear(x, w["fc3.weight"], w["fc3.bias"])


def gradients(model, w, x, label):
    for p in w.values():
        p.grad = None
    F.cross_entropy(model(w, x), label).backward()
    return {name: p.grad.numpy().copy() for name, p in w.items()}


def epoch(model, w, optimizer, x, label):
    losses = []
    for i in range(0, len(x) - BATCH + 1, BATCH):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(w, x[i:i + BATCH]), label[i:i + BATCH])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def evaluate(model, w, x, label):
    with torch.no_grad():
        y = model(w, x)
        return F.cross_entropy(y, label).item(), int((y.argmax(1) == label).sum())


def summary(out, prefix, arrays, whole=True):
    pairs = [project(name, a) for name, a in arrays.items()]
    out[prefix + ".norms"] = np.array([p[0] for p in pairs])
    out[prefix + ".projections"] = np.array([p[1] for p in pairs])
    if whole:
        for name, a in arrays.items():
            if a.size <= 128:
                out[f"{prefix}.{name}"] = a


def golden(root, model, name, folder, rate):
    out = {}
    w, (x, label), test = load(root / folder, name)
    first = (x[:BATCH], label[:BATCH])
    optimizer = torch.optim.SGD(w.values(), rate, MOMENTUM)
    out["names"] = np.array(list(w))
    summary(out, "start", gradients(model, w, *first))
    out["losses"] = np.array(epoch(model, w, optimizer, x, label)[:20])
    summary(out, "epoch", gradients(model, w, *first))
    summary(out, "weights", {k: p.detach().numpy() for k, p in w.items()}, whole=False)
    out["epoch.eval"] = np.array(evaluate(model, w, *test))
    out["epochs"] = np.array(EPOCHS)
    accuracies = []
    for seed in ("f32", "f32-1", "f32-2"):
        w, (x, label), test = load(root / seed, name)
        optimizer = torch.optim.SGD(w.values(), rate, MOMENTUM)
        for _ in range(EPOCHS):
            epoch(model, w, optimizer, x, label)
        accuracies.append(evaluate(model, w, *test)[1] / len(test[1]))
    out["accuracies"] = np.array(accuracies)
    path = pathlib.Path(__file__).parent / f"{name}.golden.npz"
    np.savez_compressed(path, **out)
    print(name, "losses", out["losses"][[0, 1, 19]], "eval", out["epoch.eval"], "accuracies",
          accuracies, path.stat().st_size, "bytes")


def main():
    root = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    golden(root, mlp, "mlp", "f32", 0.1)
    golden(root, lenet, "lenet", "f64", 0.02)


if __name__ == "__main__":
    main()
