"""Training steps on meshes, in lockstep, against the step on one rank.

Fixed requests first, then random ones: whatever the user asks for and whatever
the plan makes of it, states and loss after a step are the same.
"""
import os
import random
import re
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../dialects/Flow/Transforms/Inputs"))
from run_module import Module  # noqa: E402

FULL = os.environ.get("FLOW_FULL") == "1"
DTYPES = {"f32": np.float32, "i64": np.int64}
# model: batch, names and ranks of what may be constrained
MODELS = {
    "mlp": (6, {"x": 2, "fc1.weight": 2, "fc1.bias": 1, "fc2.weight": 2, "fc2.bias": 1, "/fc1": 2, "/relu": 2, "/fc2": 2}),
    "cnn": (5, {"x": 4, "conv.weight": 4, "conv.bias": 1, "fc.weight": 2, "h": 4, "r": 4, "q": 4, "flatten": 2, "fc": 2}),
}
FIXED = [
    ("mlp", 1, "mesh=dp=2"), ("mlp", 1, "mesh=dp=4"), ("mlp", 1, "mesh=tp=2 sbp=fc1.weight=[S(0)];fc2.weight=[S(1)]"),
    ("mlp", 1, "mesh=dp=2,tp=2 sbp=fc1.weight=[B,S(0)];fc2.weight=[B,S(1)]"), ("mlp", 3, "mesh=dp=4"),
    ("mlp", 3, "mesh=dp=2,tp=3 sbp=fc1.weight=[B,S(0)]"), ("mlp", 3, "mesh=dp=2 stage=/fc2=1"),
    ("mlp", 1, "mesh=rank=1 stage=/fc2=1"), ("mlp", 1, "mesh=dp=2 sbp=fc1.weight=[S(0)]"),
    ("cnn", 1, "mesh=dp=3"), ("cnn", 1, "mesh=tp=3 sbp=conv.weight=[S(0)]"), ("cnn", 2, "mesh=dp=2,tp=2 sbp=conv.weight=[B,S(1)];fc.weight=[B,S(1)]"),
    ("cnn", 1, "mesh=tp=2 sbp=x=[S(3)]"), ("cnn", 1, "mesh=a=2,b=2 sbp=q=[S(2),S(3)]"),
]


def random_request(rng):
    model, (_, names) = rng.choice(list(MODELS.items()))
    sizes = rng.choice([(2,), (3,), (4,), (2, 2), (2, 3)])
    axes = rng.choice([["dp", "tp"], ["a", "b"]])[: len(sizes)]
    request = "mesh=" + ",".join(f"{a}={n}" for a, n in zip(axes, sizes))
    asked = []
    for name in rng.sample(list(names), rng.randint(1, 3)):
        entries = [rng.choice(["B", "P", "P(max)", *(f"S({d})" for d in range(names[name]))]) for _ in sizes]
        asked.append(f"{name}=[{','.join(entries)}]")
    return model, rng.choice([1, 1, 2]), f"{request} sbp={';'.join(asked)}"


def passes(model, micro_batches):
    batch = MODELS[model][0] * micro_batches
    return [f"--flow-train=batch={batch} micro-batches={micro_batches} optimizer=sgd,lr=0.1,momentum=0.9", "--canonicalize", "--cse"]


def tensors(text, name):
    """Types of arguments and results of a function, by its first line."""
    line = next(l for l in text.splitlines() if f"func.func @{name}(" in l)
    arguments, results = line.split(") -> ", 1)
    parse = lambda s: [(tuple(int(d) for d in t.split("x")[:-1]), t.split("x")[-1], n)
                       for t, n in re.findall(r"tensor<([^>]*)>[^{]*\{[^}]*flow.name = \"([^\"]*)\"", s)]
    return parse(arguments), parse(results)


def plain(text):
    """Without flow's attributes: upstream's translation does not know them."""
    return re.sub(r"flow\.phase = #flow\.phase<(\w+)>", r'phase = "\1"', text)


def opt(text, flags):
    done = subprocess.run(["flow-opt", *flags], input=text, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{flags}: {done.stderr[:2000]}")
    return done.stdout


def value(argument, numbers):
    shape, element, name = argument
    if element == "i64":
        return numbers.integers(0, 3, shape).astype(np.int64) if name == "label" else np.array(4, np.int64)
    if name == "lr":
        return np.array(0.1, np.float32)
    return numbers.uniform(-1, 1, shape).astype(np.float32)


def main():
    rng = random.Random(5)
    cases = FIXED + [random_request(rng) for _ in range(150 if FULL else 14)]
    forms, wrong = {}, 0
    for model, micro_batches, request in cases:
        if (model, micro_batches) not in forms:
            with open(os.path.join(HERE, f"{model}.mlir")) as file:
                text = opt(file.read(), passes(model, micro_batches) + ["--mlir-print-debuginfo"])
            signature = {f: tensors(text, f) for f in ("step", "eval")}
            outputs = {f: [(DTYPES[e], len(s)) for s, e, _ in signature[f][1]] for f in signature}
            numbers = np.random.default_rng(1)
            values = {f: [value(a, numbers) for a in signature[f][0]] for f in signature}
            reference = Module(plain(text), [], outputs)
            forms[model, micro_batches] = text, outputs, signature, values, {f: reference.call(f, values[f]) for f in signature}
        text, outputs, signature, values, want = forms[model, micro_batches]
        placed = opt(text, [f"--flow-apply-constraints={request}", "--flow-distribute", "--flow-verify-distribution", "--flow-lockstep"])
        module = Module(plain(placed), [], outputs)
        for function in signature:
            # a scalar has one argument per stage that reads it
            extra = tensors(placed, function)[0][len(values[function]):]
            named = {a[2]: v for a, v in zip(signature[function][0], values[function])}
            got = module.call(function, values[function] + [named[a[2]] for a in extra])
            for g, w, (_, _, name) in zip(got, want[function], signature[function][1]):
                if g.shape != w.shape or not np.allclose(g, w, rtol=2e-4, atol=2e-5):
                    wrong += 1
                    print("wrong:", model, micro_batches, request, function, name, g.ravel()[:4], w.ravel()[:4])
                    break
    print(f"steps: {len(cases)}, wrong: {wrong}")


main()
