"""Data for mlp.mlir and what it must compute: mlp.py data DIR | check IN OUT.npz.. | train DIR METRICS.."""
import csv
import sys

import numpy as np

W1 = np.full((5, 7), 0.01, np.float32)
B1 = np.arange(1, 8, dtype=np.float32) / 10
W2 = np.array(
    [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, -0.1, -0.2], [-0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, -0.1, -0.2], [-0.1, -0.2, 0.5]],
    np.float32,
)


def forward(x, w1=W1, b1=B1, w2=W2):
    return np.maximum(x @ w1 + b1, 0) @ w2


def losses(x, label, batch, steps, rate, momentum):
    """Softmax cross-entropy and torch's SGD, in double precision."""
    w = [W1.astype("f8"), B1.astype("f8"), W2.astype("f8")]
    v = [np.zeros_like(p) for p in w]
    out = []
    for step in range(steps):
        # A last partial batch is dropped.
        start = step % (len(x) // batch) * batch
        xb, lb = x[start : start + batch].astype("f8"), label[start : start + batch]
        h = xb @ w[0] + w[1]
        a = np.maximum(h, 0)
        z = a @ w[2]
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        out.append(-np.log(p[np.arange(batch), lb]).mean())
        dz = p.copy()
        dz[np.arange(batch), lb] -= 1
        dz /= batch
        da = (dz @ w[2].T) * (h > 0)
        for i, g in enumerate([xb.T @ da, da.sum(0), a.T @ dz]):
            v[i] = momentum * v[i] + g
            w[i] = w[i] - rate * v[i]
    return out


def main():
    command, *args = sys.argv[1:]
    if command == "data":
        r = np.random.default_rng(3)
        x = r.normal(size=(20, 5)).astype(np.float32)
        label = r.integers(0, 3, size=20)
        np.savez(args[0] + "/train.npz", x=x, label=label, unused=x)
        np.savez(args[0] + "/in.npz", x=x[:6])
        np.savez_compressed(args[0] + "/labelled.npz", x=x[:6], label=label[:6].astype(np.int32))
    elif command == "check":
        expected = forward(np.load(args[0])["x"])
        for path in args[1:]:
            np.testing.assert_allclose(np.load(path)["y"], expected, rtol=1e-5, atol=1e-6)
            print(path.rsplit("/", 1)[-1], "agrees")
    elif command == "train":
        data = np.load(args[0] + "/train.npz")
        for path in args[1:]:
            got = [float(row["loss"]) for row in csv.DictReader(open(path))]
            expected = losses(data["x"], data["label"], 6, len(got), 0.1, 0.9)
            np.testing.assert_allclose(got, expected, rtol=2e-6)
            print(len(got), "losses agree")


main()
