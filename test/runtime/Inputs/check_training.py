# The training of linear.cpp in NumPy, compared with what the program has written.
# usage: check_training.py FOLDER OUT BATCH EPOCHS LR [no eval.csv: -]
import csv
import sys

import numpy as np
from safetensors.numpy import load_file

folder, out, batch, epochs, lr = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


w = load_file(folder + "/linear.weights")["linear.w"].astype(np.float64)
data, held = np.load(folder + "/data.npz"), np.load(folder + "/eval.npz")
x, label = data["x"], data["label"]
losses, evaluations = [], []
for epoch in range(epochs):
    for i in range(len(x) // batch):
        rows = slice(i * batch, (i + 1) * batch)
        p = softmax(x[rows] @ w)
        losses.append(-np.log(p[np.arange(batch), label[rows]]).mean())
        p[np.arange(batch), label[rows]] -= 1
        w -= lr * x[rows].T @ p / batch
    p = softmax(held["x"] @ w)
    n = len(held["x"])
    evaluations.append((-np.log(p[np.arange(n), held["label"]]).mean(), (p.argmax(axis=1) == held["label"]).mean()))

rows = list(csv.DictReader(open(out + "/metrics.csv")))
assert [int(r["step"]) for r in rows] == list(range(1, len(losses) + 1))
np.testing.assert_allclose([float(r["loss"]) for r in rows], losses, rtol=2e-5)
assert all(float(r["samples_per_s"]) > 0 for r in rows)
rows = list(csv.DictReader(open(out + "/eval.csv")))
assert [int(r["epoch"]) for r in rows] == list(range(1, epochs + 1))
np.testing.assert_allclose([float(r["loss"]) for r in rows], [e[0] for e in evaluations], rtol=2e-5)
np.testing.assert_allclose([float(r["accuracy"]) for r in rows], [e[1] for e in evaluations])
saved = load_file(out + "/model.safetensors")
assert list(saved) == ["linear.w"] and saved["linear.w"].dtype == np.float32
np.testing.assert_allclose(saved["linear.w"], w, rtol=1e-4, atol=1e-5)
