# Writes the weights and the data that the linear programs take.
import sys

import numpy as np
from safetensors.numpy import save_file

folder = sys.argv[1]
rng = np.random.default_rng(7)
w = rng.standard_normal((5, 3)).astype(np.float32)
save_file({"linear.w": w}, folder + "/linear.weights")
truth = rng.standard_normal((5, 3))
for name, n in ("data", 61), ("eval", 23):
    x = rng.standard_normal((n, 5)).astype(np.float32)
    label = np.argmax(x @ truth, axis=1)
    np.savez(f"{folder}/{name}.npz", x=x, label=label, unused=np.zeros(3))
    np.savez_compressed(f"{folder}/{name}-packed.npz", x=np.asfortranarray(x), label=label.astype(np.int32))
