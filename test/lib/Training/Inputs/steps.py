#!/usr/bin/env python3
"""Whole training steps by --flow-train against torch: losses, parameters and slots of five steps, evaluation.

    steps.py            runs all, compares with steps.goldens.npz
    steps.py --write    writes steps.goldens.npz; needs torch
"""
import pathlib
import re
import sys
import tempfile

import numpy as np

import native
from linalg_text import Function, relu

GOLDENS = pathlib.Path(__file__).parent / "steps.goldens.npz"
STEPS, BATCH, IN, HIDDEN, OUT, COUNT = 5, 6, 5, 7, 4, 4
# name: loss, label type, element type, momentum, micro-batches
RUNS = {
    "cross_entropy": ("softmax_cross_entropy", "int64", "f32", 0.9, 1),
    "cross_entropy_int32_labels": ("softmax_cross_entropy", "int32", "f32", 0.9, 1),
    "cross_entropy_micro_batches": ("softmax_cross_entropy", "int64", "f32", 0.9, 3),
    "cross_entropy_f64": ("softmax_cross_entropy", "int64", "f64", 0.5, 2),
    "mean_square": ("mse", "int64", "f32", 0.0, 1),
    "mean_square_micro_batches": ("mse", "int64", "f32", 0.9, 2),
    "given_loss": ("output:r1", "int64", "f32", 0.9, 2),
}
RATE = float(np.float32(0.1))


def inputs(dtype):
    rng = np.random.default_rng(3)
    kind = {"f32": np.float32, "f64": np.float64}[dtype]
    normal = lambda *s: rng.standard_normal(s).astype(kind)
    w = [normal(IN, HIDDEN), normal(HIDDEN), normal(HIDDEN, OUT)]
    return w, normal(STEPS, BATCH, IN), rng.integers(0, OUT, (STEPS, BATCH)), normal(
        STEPS, BATCH, OUT)


def program(dtype, batch):
    """Scores x W1 + b1, ReLU, W2, tied to nothing; second result: mean of their squares."""
    f = Function("main", dtype)
    x, w1, b1, w2 = [f.arg(s) for s in ((batch, IN), (IN, HIDDEN), (HIDDEN,), (HIDDEN, OUT))]
    h = f.generic("ij,j->ij", [f.einsum("ik,kj->ij", x, w1), b1], lambda a, b: a + b)
    y = f.einsum("ik,kj->ij", relu(f, h), w2)
    square = f.generic("ij->", [y], lambda a, c: c + a * a * (1 / (batch * OUT)), 0.0)
    text = f.text(y, square).replace('flow.name = "a0"', 'flow.kind = "input", flow.name = "x"')
    for i, name in enumerate(("w1", "b1", "w2"), 1):
        t = f.args[i].type
        text = text.replace(f'flow.name = "a{i}"', f'flow.initial = @{name}, flow.kind = "state", '
                            f'flow.name = "{name}"')
        text = f"ml_program.global private @{name}(dense<0.0> : {t}) : {t}\n" + text
    return text


def reference(name):
    import torch
    import torch.nn.functional as F
    loss_name, _, dtype, momentum, _ = RUNS[name]
    w, xs, labels, targets = inputs(dtype)
    w = [torch.tensor(v, requires_grad=True) for v in w]
    optimizer = torch.optim.SGD(w, RATE, momentum)
    forward = lambda x: torch.relu(torch.tensor(x) @ w[0] + w[1]) @ w[2]

    def loss_of(y, label, target):
        if loss_name == "mse":
            return F.mse_loss(y, torch.tensor(target))
        if loss_name.startswith("output"):
            return (y * y).mean()
        return F.cross_entropy(y, torch.tensor(label))
    losses = []
    for x, label, target in zip(xs, labels, targets):
        optimizer.zero_grad()
        loss = loss_of(forward(x), label, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    out = {"losses": np.array(losses)}
    for i, v in enumerate(w):
        out[f"state{i}"] = v.detach().numpy()
        if momentum:
            out[f"state{i + 3}"] = optimizer.state[v]["momentum_buffer"].numpy()
    with torch.no_grad():
        y = forward(xs[0])[:COUNT]
        out["eval.loss"] = np.array(
            loss_of(y, labels[0][:COUNT], targets[0][:COUNT]).item() * COUNT)
        out["eval.correct"] = np.array(int((y.argmax(1) == torch.tensor(labels[0][:COUNT])).sum()))
    return out


def run(name, folder):
    loss, label_type, dtype, momentum, micro = RUNS[name]
    batch = BATCH // micro
    options = (f"loss={loss} label-type={label_type} batch={BATCH if 'output' not in loss else 0} "
               f"micro-batches={micro} optimizer=sgd,lr=0.1,momentum={momentum}")
    text = native.run(["flow-opt", f"--flow-train={options}"], input=program(dtype, batch))
    text = re.sub(r"\n  ml_program.global .*", "", text)  # initial values come from here
    library = native.Library(text, f"{folder}/{name}")
    w, xs, labels, targets = inputs(dtype)
    state = w + [np.zeros_like(v) for v in w] if momentum else w
    split = lambda a: a.reshape(micro, batch, *a.shape[1:]) if micro > 1 else a
    with_label = [] if loss.startswith("output") else [targets if loss == "mse" else labels]
    losses = []
    for i in range(STEPS):
        batch_args = [split(a[i]) for a in [xs, *with_label]]
        *state, value = library.call("step", *state, *batch_args, RATE)
        losses.append(value)
    out = {"losses": np.array(losses)} | {f"state{i}": v for i, v in enumerate(state)}
    # evaluation sees one micro-batch; the first one may be partial
    count = min(COUNT, batch)
    result = library.call("eval", *state[:3], *[a[0][:batch] for a in [xs, *with_label]], count)
    if count == COUNT and not loss.startswith("output"):
        out["eval.loss"] = result[0]
        if loss.startswith("softmax"):
            out["eval.correct"] = result[1]
    return out


def main():
    if "--write" in sys.argv:
        np.savez_compressed(GOLDENS, **{f"{name}.{k}": v for name in RUNS
                                        for k, v in reference(name).items()})
        return 0
    goldens, bad = np.load(GOLDENS), 0
    with tempfile.TemporaryDirectory() as folder:
        for name in RUNS:
            got = run(name, folder)
            worst = max(float(np.abs(v - goldens[f"{name}.{k}"]).max() /
                              np.abs(goldens[f"{name}.{k}"]).max()) for k, v in got.items())
            ok = worst < (1e-12 if RUNS[name][2] == "f64" else 1e-5)
            bad += not ok
            print(f"{'ok  ' if ok else 'FAIL'} {name}: relative error {worst:.1e} of "
                  f"{', '.join(got)}")
    print(f"{len(RUNS) - bad} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
