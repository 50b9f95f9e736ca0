# Data files with one mistake each, for linear.cpp.
import sys

import numpy as np

folder = sys.argv[1]
rng = np.random.default_rng(1)
x, label = rng.standard_normal((20, 5)).astype(np.float32), rng.integers(0, 3, 20)
bad = label.copy()
bad[4] = 3
cases = {
    "no-x": dict(y=x, label=label),
    "no-label": dict(x=x),
    "wide": dict(x=np.zeros((20, 6), np.float32), label=label),
    "flat": dict(x=np.zeros(20, np.float32), label=label),
    "double": dict(x=x.astype(np.float64), label=label),
    "big-endian": dict(x=x.astype(">f4"), label=label),
    "float-label": dict(x=x, label=label.astype(np.float32)),
    "class": dict(x=x, label=bad),
    "few-labels": dict(x=x, label=label[:13]),
    "empty": dict(x=x[:0], label=label[:0]),
    "few": dict(x=x[:6], label=label[:6]),
    "text": dict(x=np.array(["a", "b"]), label=label),
    "fields": dict(x=np.zeros(20, [("a", "f4"), ("b", "i4")]), label=label),
    "good": dict(x=x, label=label, other=np.array(["extra"])),
}
for name, arrays in cases.items():
    np.savez(f"{folder}/{name}.npz", **arrays)
open(folder + "/text-file.npz", "w").write("no archive\n" * 10)
whole = open(folder + "/good.npz", "rb").read()
open(folder + "/cut.npz", "wb").write(whole[: len(whole) // 2])
at = whole.index(x.tobytes()[:16])
open(folder + "/corrupt.npz", "wb").write(whole[:at] + b"\xff" + whole[at + 1 :])
