# Writes an input (FOLDER), or compares outputs and local parts with NumPy (FOLDER OUT RANKS WITH_V).
import os
import sys

import numpy as np
from safetensors.numpy import load_file

folder = sys.argv[1]
rng = np.random.default_rng(5)
x, v = rng.standard_normal((7, 5)).astype(np.float32), rng.standard_normal((5, 3)).astype(np.float32)
if len(sys.argv) == 2:
    np.savez(folder + "/in.npz", x=x)
    np.savez(folder + "/in-v.npz", x=np.asfortranarray(x), v=v)
    np.savez(folder + "/wrong.npz", x=x[:6])
    sys.exit()
ranks = int(sys.argv[3])
w = load_file(folder + "/linear.weights")["linear.w"]
y, z = x @ w, x @ (v if sys.argv[4] == "v" else w)
out = np.load(sys.argv[2])
assert sorted(out.files) == ["y", "z"] and out["y"].dtype == np.float32
np.testing.assert_allclose(out["y"], y, rtol=1e-5, atol=1e-6)
np.testing.assert_allclose(out["z"], z, rtol=1e-5, atol=1e-6)
parts = [np.load(f"{folder}/local/rank-{r}.npz") for r in range(ranks)]
sizes = {1: [3], 2: [2, 1], 3: [1, 1, 1]}[ranks]
assert [p["y"].shape for p in parts] == [(7, n) for n in sizes]
np.testing.assert_array_equal(np.concatenate([p["y"] for p in parts], axis=1), out["y"])
np.testing.assert_allclose(sum(p["z"] for p in parts), z, rtol=1e-5, atol=1e-6)
