# Writes the inputs of pipeline.cpp (argument FOLDER), or compares with NumPy (FOLDER OUT EPOCHS).
import csv
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

folder = sys.argv[1]
if len(sys.argv) == 2:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((100, 1)).astype(np.float32)
    np.savez(folder + "/pipeline.npz", x=x, label=(1.5 * x + 0.1 * rng.standard_normal(x.shape)).astype(np.float32))
    save_file({"a": np.array([0.3], np.float32), "b": np.array([0.7], np.float32)}, folder + "/pipeline.weights")
    sys.exit()
out, epochs = sys.argv[2], int(sys.argv[3])
data, a, b, losses = np.load(folder + "/pipeline.npz"), 0.3, 0.7, []
for _ in range(epochs):
    for i in range(5):
        x, t = data["x"][20 * i : 20 * i + 20], data["label"][20 * i : 20 * i + 20]
        error = a * b * x - t
        losses.append((error**2).mean())
        g = 2 * error / 20
        a, b = a - 0.05 * (g * b * x).sum(), b - 0.05 * (g * a * x).sum()
got = [float(r["loss"]) for r in csv.DictReader(open(out + "/metrics.csv"))]
np.testing.assert_allclose(got, losses, rtol=1e-4)
saved = load_file(out + "/model.safetensors")
np.testing.assert_allclose([saved["a"][0], saved["b"][0]], [a, b], rtol=1e-4)
