"""A training step distributed over meshes and stages, against the step on one device.

usage: training_step.py MODEL.mlir: for each distribution below, the lockstep form and
the simulated ranks must give the global step's states and loss.
"""
import os
import re
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../../../dialects/Flow/Transforms/Inputs"))
from run_module import Module  # noqa: E402

DTYPES = {"f32": np.float32, "f64": np.float64, "i64": np.int64}
TRAIN = "batch=%d micro-batches=%d optimizer=sgd,lr=0.1,momentum=0.9"
CASES = [  # batch, micro-batches, constraints
    (7, 1, "mesh=dp=4"),
    (2, 1, "mesh=dp=3"),
    (5, 1, "mesh=dp=2,tp=2 sbp=fc1.weight=[B,S(0)];fc2.weight=[B,S(1)]"),
    (5, 1, "mesh=tp=3 sbp=fc1.weight=[S(0)];fc2.weight=[S(1)]"),
    (24, 4, "mesh=dp=2"),
    (15, 3, "mesh=dp=2 stage=/fc2=1"),
    (24, 4, "mesh=dp=2,tp=2 stage=/fc2=1 sbp=fc1.weight=[B,S(0)]"),
]


def opt(text, *passes):
    done = subprocess.run(["flow-opt", *passes], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def plain(text):
    """Only the functions, without flow's attributes, which LLVM does not know."""
    text = opt(text, "--canonicalize", "--symbol-dce")
    text = re.sub(r"( attrs =)? +\{flow\.phase = #flow\.phase<\w+>\}", "", text)
    text = re.sub(r"flow\.[a-z_]+ = #?[^,{}]*(, )?(?=[^{}]*\})", "", text)
    text = text.replace(" {}", "")
    return "\n".join(line for line in text.splitlines() if "ml_program.global" not in line)


def signature(text, name):
    """(dtype, shape) of the arguments and results of a function."""
    head = re.search(rf"func\.func @{name}\((.*?)\) -> \(?(.*?)\)? \{{", text).groups()
    return [[(t[-1], tuple(map(int, t[:-1]))) for t in (m.split("x") for m in re.findall(r"tensor<([^>]*)>", part))]
            for part in head]


def main():
    model = open(sys.argv[1]).read()
    wrong = 0
    for batch, micro, constraints in CASES:
        sized = model.replace("<6x", f"<{batch // micro}x")  # the model is written for 6 samples
        step = opt(sized, "--flow-train=" + TRAIN % (batch, micro), "--mlir-print-debuginfo")
        placed = opt(step, "--flow-apply-constraints=" + constraints, "--flow-distribute", "--flow-verify-distribution",
                     "--mlir-print-debuginfo")
        forms = {"global": step, "lockstep": opt(placed, "--flow-lockstep"),
                 "ranks": opt(placed, "--flow-localize", "--flow-verify-localization", "--flow-simulate-ranks")}
        rng = np.random.default_rng(3)
        inputs, results = {}, {}
        for form, text in forms.items():
            head = re.search(r"func\.func @step\((.*?)\) -> ", opt(text, "--symbol-dce")).group(1)
            names = re.findall(r'flow\.name = "([^"]*)"', head)
            text = plain(text)
            arguments, outs = signature(text, "step")
            for name, (dtype, shape) in zip(names, arguments):  # a scalar may be an argument of each stage
                if name not in inputs:
                    inputs[name] = (rng.integers(0, 3, shape) if dtype == "i64"
                                    else rng.standard_normal(shape).astype(DTYPES[dtype]))
            assert len(names) == len(arguments)
            module = Module(text, [], {"step": [(DTYPES[d], len(s)) for d, s in outs]})
            results[form] = module.call("step", [inputs[name].copy() for name in names])
        for form in ("lockstep", "ranks"):
            for i, (a, b) in enumerate(zip(results["global"], results[form])):
                if not np.allclose(a, b, rtol=1e-5, atol=1e-5):
                    wrong += 1
                    print("wrong:", form, "result", i, batch, micro, constraints, abs(a - b).max())
    print(f"training steps: {len(CASES)}, wrong: {wrong}")


main()
