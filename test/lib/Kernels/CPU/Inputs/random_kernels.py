"""Random programs against numpy. Arguments: first seed, number of programs.
Each program is one kernel; FLOW_FULL=1 takes many more."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernelrun import Module  # noqa: E402
from programs import Program  # noqa: E402


def check(seeds, dtype, options="", ops=None, form=False):
    programs, text = [], ""
    for s in seeds:
        p = Program(s, dtype)
        t = p.build(f"f{s}", ops or int(p.rng.integers(1, 6)))
        if p.results:
            programs.append((s, p))
            text += t
    module = Module(text, options=options, form=form)
    bad = 0
    for s, p in programs:
        outs = module.run_function(f"f{s}", p.inputs) if form else module[f"f{s}"](*p.inputs)
        for name, got in zip(p.results, outs):
            want = p.values[name]
            limit = (2e-4 if dtype == "f32" else 1e-9) * max(1.0, np.abs(want).max(initial=0))
            err = np.abs(got.astype(np.float64) - want).max(initial=0)
            if not err <= limit:
                bad += 1
                print(f"seed {s} {dtype} {options} {'cut' if form else ''}: {name} of shape {want.shape}: error {err:.3g}, limit {limit:.3g} ({module.folder})")
    return len(programs), bad


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    if os.environ.get("FLOW_FULL"):
        count *= 25
    done = bad = 0
    for at in range(first, first + count, 20):
        seeds = range(at, min(at + 20, first + count))
        # Whole programs as one kernel each, then cut into kernels.
        for dtype, options, form in (("f32", "", False), ("f64", "chunks=3", False), ("f32", "", True)):
            d, b = check(seeds, dtype, options, form=form, ops=12 if form else None)
            done, bad = done + d, bad + b
    print(f"{done} programs, {bad} wrong")
    sys.exit(bad != 0)
