#!/usr/bin/env python3
"""Programs whose gradients torch knows.

    cases.py                 differentiates and runs all cases, compares with goldens.npz
    cases.py --write         writes goldens.npz; needs torch
    cases.py NAME...         only these
    cases.py --then=PASS     runs PASS after differentiation

A case is a function of arguments a0, a1, ..; its first result is a scalar. The golden values are that
scalar and its gradients by the arguments in `wrt`. Inputs are drawn from a generator that the name seeds.
"""
import math
import pathlib
import sys
import tempfile
import zlib

import numpy as np

from linalg_text import (Function, Scalar, Tensor, gather_rows, gelu, layernorm, log_softmax,
                         numpy_type, relu)
import native

GOLDENS = pathlib.Path(__file__).parent / "goldens.npz"
try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

CASES = {}


class Case:
    def __init__(self, name, tolerance=2e-5):
        self.name, self.tolerance = name, tolerance
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def normal(self, *shape, dtype=np.float32):
        return self.rng.standard_normal(shape).astype(dtype)

    def build(self):
        """Sets text, wrt, inputs and reference (torch tensors -> scalar)."""
        raise NotImplementedError


def case(*variants, tolerance=2e-5):
    """Registers `build(c, *variant) -> (text, wrt, inputs, torch function)`."""
    def register(build):
        for variant in variants or [()]:
            name = "_".join([build.__name__, *map(str, variant)])
            CASES[name] = (build, variant, tolerance)
        return build
    return register


def make(name):
    build, variant, tolerance = CASES[name]
    c = Case(name, tolerance)
    c.text, c.wrt, c.inputs, c.reference = build(c, *variant)
    return c


@case()
def mlp_cross_entropy(c):
    b, d, h, k = 6, 5, 7, 4
    f = Function(c.name)
    x, w1, b1, w2, b2 = [f.arg(s) for s in ((b, d), (d, h), (h,), (h, k), (k,))]
    label = f.arg((b,), "i64")
    add = lambda y, v: f.generic("ij,j->ij", [y, v], lambda p, q: p + q)
    hidden = relu(f, add(f.einsum("ik,kj->ij", x, w1), b1))
    scores = log_softmax(f, add(f.einsum("ik,kj->ij", hidden, w2), b2))

    def picked(p, l, acc):
        at = f.op(f"arith.index_cast {l.name} : i64 to index", "index")
        hit = f.op(f"arith.cmpi eq, {f.index(1).name}, {at.name} : index", "i1")
        return acc + hit.choose(p, 0.0) * (-1.0 / b)
    loss = f.generic("ij,i->", [scores, label], picked, 0.0)
    inputs = [c.normal(*a.shape) for a in f.args[:5]] + [c.rng.integers(0, k, b)]
    return f.text(loss), range(5), inputs, lambda x, w1, b1, w2, b2, l: F.cross_entropy(
        torch.relu(x @ w1 + b1) @ w2 + b2, l)


@case()
def layer_norm(c):
    f = Function(c.name)
    x, g, b, t = f.arg((5, 9)), f.arg((9,)), f.arg((9,)), f.arg((5, 9))
    loss = f.dot(layernorm(f, x, g, b), t)
    inputs = [c.normal(5, 9) + 3, c.normal(9), c.normal(9), c.normal(5, 9)]
    return f.text(loss), range(3), inputs, lambda x, g, b, t: (
        F.layer_norm(x, (9,), g, b) * t).sum()


@case()
def batch_norm(c):
    f = Function(c.name)
    x, g, b, t = f.arg((6, 5)), f.arg((5,)), f.arg((5,)), f.arg((6, 5))
    mean = f.generic("j->j", [f.sum("ij->j", x)], lambda a: a * (1 / 6))
    xc = f.generic("ij,j->ij", [x, mean], lambda a, b: a - b)
    square = f.generic("ij->j", [xc], lambda a, c: c + a * a, 0.0)
    rs = f.generic("j->j", [square], lambda a: (a * (1 / 6) + 1e-5).math("rsqrt"))
    y = f.generic("ij,j,j,j->ij", [xc, rs, g, b], lambda a, r, g, b: a * r * g + b)
    inputs = [c.normal(6, 5), c.normal(5), c.normal(5), c.normal(6, 5)]
    return f.text(f.dot(y, t)), range(3), inputs, lambda x, g, b, t: (
        F.batch_norm(x, None, None, g, b, True) * t).sum()


@case()
def batch_norm_inference(c):
    f = Function(c.name)
    x, g, b, m, v, t = f.arg((6, 5)), *[f.arg((5,)) for _ in range(4)], f.arg((6, 5))
    y = f.generic("ij,j,j,j,j->ij", [x, g, b, m, v],
                  lambda x, g, b, m, v: (x - m) * (v + 1e-5).math("rsqrt") * g + b)
    inputs = [c.normal(*a.shape) for a in f.args]
    inputs[4] = np.abs(inputs[4]) + 0.5
    return f.text(f.dot(y, t)), range(3), inputs, lambda x, g, b, m, v, t: (
        F.batch_norm(x, m, v, g, b) * t).sum()


@case(("gelu",), ("sigmoid",), ("silu",), ("tanh",), ("softplus",), ("elu",), ("relu",),
      ("hardtanh",))
def activation(c, kind):
    f = Function(c.name)
    x, t = f.arg((5, 9)), f.arg((5, 9))
    one = lambda body: f.generic("ij->ij", [x], body)
    sigmoid = lambda a: a.f.constant(1.0, "f32") / ((-a).math("exp") + 1.0)
    y = {"gelu": lambda: gelu(f, x), "relu": lambda: relu(f, x),
         "sigmoid": lambda: one(sigmoid), "silu": lambda: one(lambda a: a * sigmoid(a)),
         "tanh": lambda: one(lambda a: a.math("tanh")),
         "softplus": lambda: one(lambda a: a.math("exp").math("log1p")),
         "elu": lambda: one(lambda a: a.greater(0.0).choose(a, a.math("expm1"))),
         "hardtanh": lambda: one(
             lambda a: (b := a.greater(1.0).choose(f.constant(1.0, "f32"), a)).greater(-1.0).choose(
                 b, f.constant(-1.0, "f32")))}[kind]()
    inputs = [c.normal(5, 9), c.normal(5, 9)]
    return f.text(f.dot(y, t)), [0], inputs, lambda x, t: (
        getattr(torch if kind in ("sigmoid", "tanh") else F, kind)(x) * t).sum()


@case(("derived",), ("softmax",))
def attention(c, kind):
    h, n, d = 3, 6, 4
    f = Function(c.name)
    q, k, v, t = [f.arg((h, n, d)) for _ in range(4)]

    def causal(a):
        keep = f.op(f"arith.cmpi sge, {f.index(1).name}, {f.index(2).name} : index", "i1")
        return keep.choose(a * d ** -0.5, -math.inf)
    s = f.generic("hij->hij", [f.einsum("hid,hjd->hij", q, k)], causal)
    if kind == "derived":
        m = f.max("hij->hi", s)
        e = f.generic("hij,hi->hij", [s, m], lambda a, b: (a - b).math("exp"))
        p = f.generic("hij,hi->hij", [e, f.sum("hij->hi", e)], lambda a, b: a / b)
    else:
        p = f.softmax(s, 2)
    loss = f.dot(f.einsum("hij,hjd->hid", p, v), t)
    inputs = [c.normal(h, n, d) for _ in range(4)]
    return f.text(loss), range(3), inputs, lambda q, k, v, t: (
        F.scaled_dot_product_attention(q, k, v, is_causal=True) * t).sum()


@case((0,), (1,), (2,))
def softmax_of_dim(c, dim):
    f = Function(c.name)
    x, t = f.arg((3, 4, 5)), f.arg((3, 4, 5))
    inputs = [c.normal(3, 4, 5), c.normal(3, 4, 5)]
    return f.text(f.dot(f.softmax(x, dim), t)), [0], inputs, lambda x, t: (
        x.softmax(dim) * t).sum()


@case((1, 1), (2, 1), (1, 2), (3, 2), (2, 3))
def conv_pool(c, stride, dilation):
    n, size, i, k, o = 2, 9, 3, 3, 4
    f = Function(c.name)
    x, w, b = f.arg((n, size, size, i)), f.arg((k, k, i, o)), f.arg((o,))
    y = f.generic("nhwc,c->nhwc", [f.conv(x, w, stride, dilation), b], lambda a, b: a + b)
    p = f.pool(relu(f, y, "nhwc"), "max", 2, 2)
    t = f.arg(p.shape)
    inputs = [c.normal(*a.shape) for a in f.args]

    def reference(x, w, b, t):
        y = F.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), b, stride, 0, dilation)
        return (F.max_pool2d(torch.relu(y), 2).permute(0, 2, 3, 1) * t).sum()
    return f.text(f.dot(p, t)), range(3), inputs, reference


@case(("sum", 3, 2, 1), ("sum", 2, 3, 1), ("sum", 3, 1, 2), ("max", 3, 2, 1), ("max", 3, 1, 1),
      ("max", 2, 3, 1), ("max", 2, 1, 2), ("max", 2, 2, 1))
def pool(c, kind, window, stride, dilation):
    f = Function(c.name)
    x = f.arg((2, 7, 7, 3))
    p = f.pool(x, kind, window, stride, dilation)
    t = f.arg(p.shape)
    inputs = [np.round(c.normal(2, 7, 7, 3)), c.normal(*p.shape)]  # many ties

    def reference(x, t):
        x = x.permute(0, 3, 1, 2)
        if kind == "max":
            y = F.max_pool2d(x, window, stride, 0, dilation)
        else:
            ones = torch.ones(3, 1, window, window)
            y = F.conv2d(x, ones, None, stride, 0, dilation, groups=3)
        return (y.permute(0, 2, 3, 1) * t).sum()
    return f.text(f.dot(p, t)), [0], inputs, reference


@case((1,), (2,))
def embedding(c, rank):
    f = Function(c.name)
    shape = (3, 4)[-rank:]
    w, index, t = f.arg((11, 5)), f.arg(shape, "i64"), f.arg((*shape, 5))
    e = gather_rows(f, w, index)
    dims = "nsd" if rank == 2 else "nd"
    loss = f.dot(f.generic(f"{dims}->{dims}", [e], lambda a: a * a), t)
    inputs = [c.normal(11, 5), c.rng.integers(0, 4, shape), c.normal(*shape, 5)]
    return f.text(loss), [0], inputs, lambda w, i, t: ((F.embedding(i, w) ** 2) * t).sum()


@case()
def amax_ties(c):
    f = Function(c.name)
    x, t = f.arg((4, 6)), f.arg((4,))
    inputs = [np.round(c.normal(4, 6)), c.normal(4)]
    return f.text(f.dot(f.max("ij->i", x), t)), [0], inputs, lambda x, t: (x.amax(1) * t).sum()


@case()
def broadcast_scalar_ops(c):
    f = Function(c.name)
    x, y, t = f.arg((4, 1)), f.arg((4, 6)), f.arg((4, 6))
    z = f.generic("i0,ij->ij", [x, y],
                  lambda a, b: (a / b).max(b) + (a * b).math("tanh") + b.min(0.5))
    inputs = [c.normal(4, 1), np.round(c.normal(4, 6) * 2) / 2 + np.float32(0.25), c.normal(4, 6)]
    return f.text(f.dot(z, t)), range(2), inputs, lambda x, y, t: (
        (torch.maximum(x / y, y) + torch.tanh(x * y) + torch.minimum(y, torch.tensor(0.5))) *
        t).sum()


@case()
def scalar_zoo(c):
    f = Function(c.name)
    x, y = f.arg((4, 6)), f.arg((4, 6))
    z = f.generic("ij,ij->ij", [x, y], lambda a, b: (
        a.math("absf").pow(b) + a.pow(3.0) + a.pow(2.0) + (b * b + 1.0).math("sqrt") +
        (b * b + 1.0).math("log") + a.math("sin") * b.math("cos") - (-b)))
    inputs = [c.normal(4, 6), c.normal(4, 6)]
    return f.text(f.sum("ij->", z)), range(2), inputs, lambda a, b: (
        a.abs() ** b + a ** 3 + a ** 2 + (b * b + 1).sqrt() + (b * b + 1).log() +
        a.sin() * b.cos() + b).sum()


@case(*[(n,) for n in ("exp exp2 expm1 log log1p log2 log10 sinh cosh tan asin acos atan asinh "
                       "acosh atanh erf erfc rsqrt absf floor ceil trunc").split()])
def unary(c, op):
    f = Function(c.name, "f64")
    x, t = f.arg((13,)), f.arg((13,))
    y = f.generic("i->i", [x], lambda a: a.math(op))
    low, high = {"log": (0.1, 3), "log1p": (-0.9, 3), "log2": (0.1, 3), "log10": (0.1, 3),
                 "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "acosh": (1.1, 3),
                 "atanh": (-0.9, 0.9), "rsqrt": (0.1, 3)}.get(op, (-2, 2))
    inputs = [c.rng.uniform(low, high, 13), c.normal(13, dtype=np.float64)]
    if op == "absf":
        inputs[0][:3] = 0
    name = {"absf": "abs"}.get(op, op)
    return f.text(f.dot(y, t)), [0], inputs, lambda x, t: (getattr(torch, name)(x) * t).sum()


@case(("atan2",), ("rem",), ("copysign",))
def binary(c, op):
    f = Function(c.name, "f64")
    x, y, t = [f.arg((13,)) for _ in range(3)]
    z = f.generic("i,i->i", [x, y], lambda a, b: getattr(a, op)(b))
    inputs = [c.normal(13, dtype=np.float64) for _ in range(3)]
    name = {"rem": "fmod"}.get(op, op)
    return f.text(f.dot(z, t)), range(2), inputs, lambda x, y, t: (
        getattr(torch, name)(x, y) * t).sum()


@case()
def masked_branch(c):
    # the gradient of the branch not taken is infinite at 0: torch's own answer is NaN there
    f = Function(c.name)
    x = f.arg((5,))
    y = f.generic("i->i", [x], lambda a: a.greater(0.0).choose(a.math("sqrt"), 0.0))
    inputs = [np.array([0, 1, 4, -1, 0.25], np.float32)]

    def reference(x):
        positive = x[torch.tensor([1, 2, 4])]
        return positive.sqrt().sum()
    return f.text(f.sum("i->", y)), [0], inputs, reference


@case()
def shapes(c):
    f = Function(c.name)
    x, t = f.arg((4, 6)), f.arg((3, 9))
    e = f.raw(f"tensor.expand_shape {x.name} [[0], [1, 2]] output_shape [4, 2, 3] : {x.type} into "
              "tensor<4x2x3xf32>", (4, 2, 3))
    cut = lambda text, shape: f.raw(
        f"tensor.extract_slice {e.name}{text} : {e.type} to {Tensor('', shape, 'f32').type}", shape)
    s1 = cut("[0, 0, 0] [3, 1, 3] [1, 1, 1]", (3, 3))
    s2 = cut("[1, 1, 0] [3, 1, 3] [1, 1, 1]", (3, 3))
    s3 = cut("[0, 1, 0] [2, 1, 3] [2, 1, 1]", (2, 3))
    zero = f.constant(0.0, "f32")
    p = f.raw(f"tensor.pad {s3.name} low[1, 0] high[0, 0] {{\n^bb0(%i: index, %j: index):\n  "
              f"tensor.yield {zero.name} : f32\n}} : {s3.type} to tensor<3x3xf32>", (3, 3))
    all_ = f.raw(f"tensor.concat dim(1) {s1.name}, {s2.name}, {p.name} : ({s1.type}, {s2.type}, "
                 f"{p.type}) -> tensor<3x9xf32>", (3, 9))
    d = f.raw(f"tensor.insert_slice {s1.name} into {all_.name}[0, 2] [3, 3] [1, 1] : {s1.type} "
              f"into {all_.type}", (3, 9))
    loss = f.generic("ij,ij->", [d, t], lambda a, b, c: c + a * a * b, 0.0)

    def reference(x, t):
        e = x.reshape(4, 2, 3)
        s1, s2, s3 = e[0:3, 0], e[1:4, 1], e[0:4:2, 1]
        d = torch.cat([s1, s2, F.pad(s3, (0, 0, 1, 0))], 1)
        d = torch.cat([d[:, :2], s1, d[:, 5:]], 1)
        return (d * d * t).sum()
    return f.text(loss), [0], [c.normal(4, 6), c.normal(3, 9)], reference


@case()
def loop_rnn(c):
    n, b, h = 5, 3, 4
    f = Function(c.name)
    xs, h0, w, u = f.arg((n, b, h)), f.arg((b, h)), f.arg((h, h)), f.arg((h, h))
    f.emit("%c0 = arith.constant 0 : index")
    f.emit("%c1 = arith.constant 1 : index")
    f.emit(f"%cn = arith.constant {n} : index")
    f.emit(f"%hl = scf.for %t = %c0 to %cn step %c1 iter_args(%h = {h0.name}) -> ({h0.type}) {{")
    x = f.raw(f"tensor.extract_slice %a0[%t, 0, 0] [1, {b}, {h}] [1, 1, 1] : {xs.type} to "
              f"{h0.type}", (b, h))
    p, q = f.einsum("ik,kj->ij", x, w), f.einsum("ik,kj->ij", Tensor("%h", (b, h), "f32"), u)
    y = f.generic("ij,ij->ij", [p, q], lambda a, b: (a + b).math("tanh"))
    f.emit(f"scf.yield {y.name} : {y.type}")
    f.emit("}")
    loss = f.generic("ij->", [Tensor("%hl", (b, h), "f32")], lambda a, c: c + a * a, 0.0)

    def reference(xs, h, w, u):
        for i in range(n):
            h = torch.tanh(xs[i] @ w + h @ u)
        return (h * h).sum()
    return f.text(loss), range(4), [c.normal(*a.shape) for a in f.args], reference


@case((0,), (1,), (4,))
def nested_loop(c, trips):
    """The outer trip count comes at run time; also carries a number that is not differentiated."""
    f = Function(c.name)
    x, w, n = f.arg((3, 4)), f.arg((4, 4)), f.arg((), "i64")
    for line in (f"%ni = tensor.extract {n.name}[] : {n.type}",
                 "%n = arith.index_cast %ni : i64 to index", "%c0 = arith.constant 0 : index",
                 "%c1 = arith.constant 1 : index", "%c2 = arith.constant 2 : index",
                 "%one = arith.constant 1.0 : f32", "%half = arith.constant 0.5 : f32",
                 f"%r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%h = {x.name}, %k = %one) -> "
                 f"({x.type}, f32) {{",
                 f"%q = scf.for %j = %c0 to %c2 step %c1 iter_args(%g = %h) -> ({x.type}) {{"):
        f.emit(line)
    k = Scalar(f, "%k", "f32")
    y = f.einsum("ik,kj->ij", Tensor("%g", (3, 4), "f32"), w)
    y = f.generic("ij->ij", [y], lambda a: a.math("tanh"))
    f.emit(f"scf.yield {y.name} : {y.type}")
    f.emit("}")
    y = f.generic("ij->ij", [Tensor("%q", (3, 4), "f32")], lambda a: a * a + a)
    f.emit(f"%kt = tensor.from_elements %k : tensor<f32>")
    y = f.raw(f"linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, "
              f"affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = "
              f'["parallel", "parallel"]}} ins({y.name}, %kt : {y.type}, tensor<f32>) '
              f"outs({y.name} : {y.type}) {{\n^bb0(%p: f32, %s: f32, %o: f32):\n"
              f"  %m = arith.mulf %p, %s : f32\n  linalg.yield %m : f32\n}} -> {y.type}", (3, 4))
    f.emit("%kn = arith.mulf %k, %half : f32")
    f.emit(f"scf.yield {y.name}, %kn : {y.type}, f32")
    f.emit("}")
    loss = f.sum("ij->", Tensor("%r#0", (3, 4), "f32"))

    def reference(h, w, n):
        k = 1.0
        for _ in range(int(n)):
            for _ in range(2):
                h = torch.tanh(h @ w)
            h, k = (h * h + h) * k, k * 0.5
        return h.sum() + 0 * w.sum()
    return (f.text(loss), range(2), [c.normal(3, 4), c.normal(4, 4) * np.float32(0.5),
                                     np.array(trips)], reference)


@case((True,), (False,))
def branch(c, taken):
    f = Function(c.name)
    x, w, p = f.arg((3, 4)), f.arg((4, 4)), f.arg((), "i1")
    f.emit(f"%p = tensor.extract {p.name}[] : {p.type}")
    f.emit(f"%r = scf.if %p -> ({x.type}) {{")
    y = f.einsum("ik,kj->ij", x, w)
    f.emit(f"scf.yield {y.name} : {y.type}")
    f.emit("} else {")
    y = f.generic("ij->ij", [x], lambda a: a.math("exp"))
    f.emit(f"scf.yield {y.name} : {y.type}")
    f.emit("}")
    loss = f.generic("ij->", [Tensor("%r", (3, 4), "f32")], lambda a, c: c + a * a, 0.0)
    return (f.text(loss), range(2), [c.normal(3, 4), c.normal(4, 4), np.array(taken)],
            lambda x, w, p: ((x @ w if taken else x.exp()) ** 2).sum() + 0 * w.sum())


@case()
def diagonal(c):
    f = Function(c.name)
    x, t = f.arg((4, 4)), f.arg((4,))
    loss = f.generic("ii,i->", [x, t], lambda a, b, c: c + a * a * b, 0.0)
    return f.text(loss), range(2), [c.normal(4, 4), c.normal(4)], lambda x, t: (
        x.diagonal() ** 2 * t).sum()


@case()
def named_ops(c):
    f = Function(c.name)
    x, w, v = f.arg((2, 3, 4)), f.arg((2, 4, 5)), f.arg((5,))
    z, e = f.fill((2, 3, 5), 0.0), f.empty((2, 3, 5))
    t = z.type
    y = f.raw(f"linalg.batch_matmul ins({x.name}, {w.name} : {x.type}, {w.type}) outs({z.name} : "
              f"{t}) -> {t}", (2, 3, 5))
    b = f.raw(f"linalg.broadcast ins({v.name} : {v.type}) outs({e.name} : {t}) dimensions = [0, 1]",
              (2, 3, 5))
    y = f.raw(f"linalg.add ins({y.name}, {b.name} : {t}, {t}) outs({e.name} : {t}) -> {t}",
              (2, 3, 5))
    y = f.raw(f"linalg.tanh ins({y.name} : {t}) outs({e.name} : {t}) -> {t}", (2, 3, 5))
    y = f.raw(f"linalg.map {{ math.exp }} ins({y.name} : {t}) outs({e.name} : {t})", (2, 3, 5))
    e = f.empty((5, 2, 3))
    y = f.raw(f"linalg.transpose ins({y.name} : {t}) outs({e.name} : {e.type}) permutation = "
              "[2, 0, 1]", (5, 2, 3))
    z = f.fill((2, 3), 0.0)
    y = f.raw(f"linalg.reduce {{ arith.addf }} ins({y.name} : {y.type}) outs({z.name} : {z.type}) "
              "dimensions = [0]", (2, 3))
    y = f.raw(f"arith.mulf {y.name}, {y.name} : {y.type}", (2, 3))
    return f.text(f.sum("ij->", y)), range(3), [c.normal(*a.shape) for a in f.args], (
        lambda x, w, v: (torch.tanh(x @ w + v).exp().sum(-1) ** 2).sum())


@case()
def function_scalars(c):
    """Scalars at function level: read from a tensor, computed, filled."""
    f = Function(c.name)
    s, x = f.arg((2,)), f.arg((3, 4))
    f.emit("%c1 = arith.constant 1 : index")
    f.emit("%s = tensor.extract %a0[%c1] : tensor<2xf32>")
    f.emit("%e = math.exp %s : f32")
    f.emit("%m = arith.mulf %e, %s : f32")
    e = f.empty((3, 4))
    y = f.raw(f"linalg.fill ins(%m : f32) outs({e.name} : {e.type}) -> {e.type}", (3, 4))
    z = f.generic("ij,ij->ij", [x, y], lambda a, b: a * b)
    return f.text(f.sum("ij->", z)), range(2), [c.normal(2), c.normal(3, 4)], lambda s, x: (
        x * (s[1].exp() * s[1])).sum()


@case()
def tied_weights(c):
    f = Function(c.name)
    x, w = f.arg((5, 4)), f.arg((4, 4))
    h = x
    for _ in range(3):
        h = f.generic("ij->ij", [f.einsum("ik,kj->ij", h, w)], lambda a: a.math("tanh"))
    h = f.einsum("ik,jk->ij", h, w)
    return f.text(f.sum("ij->", h)), range(2), [c.normal(5, 4), c.normal(4, 4)], lambda x, w: (
        torch.tanh(torch.tanh(torch.tanh(x @ w) @ w) @ w) @ w.T).sum()


@case(tolerance=2e-2)
def mixed_precision(c):
    """Master weight f32, cast to bf16, contraction bf16 x bf16 -> f32, result cut to bf16."""
    f = Function(c.name, "bf16")
    x, w, b, t = f.arg((40, 16)), f.arg((16, 4), "f32"), f.arg((4,), "f32"), f.arg((40, 4), "f32")
    wb = f.generic("ij->ij", [w], lambda a: a.cast("bf16"), dtype="bf16")
    z = f.fill((40, 4), 0.0, "f32")
    y = f.raw(f"linalg.matmul ins({x.name}, {wb.name} : {x.type}, {wb.type}) outs({z.name} : "
              f"{z.type}) -> {z.type}", (40, 4), "f32")
    r = f.generic("ij,j->ij", [y, b], lambda a, b: (a + b).cast("bf16"), dtype="bf16")
    loss = f.generic("ij,ij->", [r, t], lambda a, b, c: c + a.cast("f32") * b,
                     f.fill((), 0.0, "f32"))
    bf = numpy_type("bf16")
    inputs = [c.normal(40, 16).astype(bf), c.normal(16, 4), c.normal(4), c.normal(40, 4)]

    def reference(x, w, b, t):
        y = x.float() @ w.bfloat16().float() + b
        return (y.bfloat16().float() * t).sum()
    return f.text(loss), range(3), inputs, reference


@case()
def gpt(c):
    """Two layers with tied embeddings and cross-entropy."""
    layers, n, d, heads, v = 2, 7, 8, 2, 11
    k = d // heads
    f = Function(c.name)
    index, label, we = f.arg((n,), "i64"), f.arg((n,), "i64"), f.arg((v, d))
    x = gather_rows(f, we, index)

    def causal(a):
        keep = f.op(f"arith.cmpi sge, {f.index(1).name}, {f.index(2).name} : index", "i1")
        return keep.choose(a * k ** -0.5, -math.inf)
    shapes = [(d,), (d,), (d, heads, k), (d, heads, k), (d, heads, k), (heads, k, d), (d,), (d,),
              (d, 4 * d), (4 * d, d)]
    for _ in range(layers):
        g, b, wq, wk, wv, wo, g2, b2, w1, w2 = [f.arg(s) for s in shapes]
        h = layernorm(f, x, g, b)
        q, key, val = [f.einsum("td,dhk->htk", h, w) for w in (wq, wk, wv)]
        s = f.generic("hij->hij", [f.einsum("hik,hjk->hij", q, key)], causal)
        o = f.einsum("hij,hjk->hik", f.softmax(s, 2), val)
        x = f.generic("ij,ij->ij", [x, f.einsum("htk,hkd->td", o, wo)], lambda a, b: a + b)
        y = gelu(f, f.einsum("id,de->ie", layernorm(f, x, g2, b2), w1))
        x = f.generic("ij,ij->ij", [x, f.einsum("ie,ed->id", y, w2)], lambda a, b: a + b)
    scores = f.einsum("td,vd->tv", x, we)
    m = f.max("ij->i", scores)
    s = f.generic("ij,i->i", [scores, m], lambda a, b, c: c + (a - b).math("exp"), 0.0)
    lse = f.generic("i,i->i", [m, s], lambda a, b: a + b.math("log"))

    def picked(p, l, q, acc):
        at = f.op(f"arith.index_cast {l.name} : i64 to index", "index")
        hit = f.op(f"arith.cmpi eq, {f.index(1).name}, {at.name} : index", "i1")
        return acc + hit.choose(q - p, 0.0) * (1.0 / n)
    loss = f.generic("ij,i,i->", [scores, label, lse], picked, 0.0)
    inputs = [c.rng.integers(0, v, n), c.rng.integers(0, v, n)]
    inputs += [c.normal(*a.shape) * np.float32(0.5) for a in f.args[2:]]

    def reference(index, label, we, *p):
        x = F.embedding(index, we)
        for i in range(layers):
            g, b, wq, wk, wv, wo, g2, b2, w1, w2 = p[10 * i:10 * i + 10]
            h = F.layer_norm(x, (d,), g, b)
            q, key, val = [torch.einsum("td,dhk->htk", h, w) for w in (wq, wk, wv)]
            o = F.scaled_dot_product_attention(q, key, val, is_causal=True)
            x = x + torch.einsum("htk,hkd->td", o, wo)
            x = x + F.gelu(F.layer_norm(x, (d,), g2, b2) @ w1) @ w2
        return F.cross_entropy(x @ we.T, label)
    return f.text(loss), range(2, len(f.args)), inputs, reference


def write(names):
    out = {}
    for name in names:
        c = make(name)
        tensors = []
        for i, a in enumerate(c.inputs):
            t = torch.tensor(a.astype(np.float32)).bfloat16() if a.dtype.name == "bfloat16" else \
                torch.tensor(a)
            tensors.append(t.requires_grad_(i in c.wrt))
        y = c.reference(*tensors)
        grads = torch.autograd.grad(y, [tensors[i] for i in c.wrt], allow_unused=True)
        for i, t in enumerate([y, *grads]):
            t = t.detach()
            out[f"{name}.{i}"] = (t.float() if t.dtype == torch.bfloat16 else t).numpy()
    np.savez_compressed(GOLDENS, **out)
    print(f"{len(names)} cases, {GOLDENS.stat().st_size} bytes")


def check(names, options=()):
    cases = [make(name) for name in names]
    goldens = np.load(GOLDENS)
    text = native.differentiate("".join(c.text for c in cases), {c.name: c.wrt for c in cases},
                                options)
    with tempfile.TemporaryDirectory() as folder:
        library = native.Library(text, folder + "/cases")
        bad = 0
        for c in cases:
            worst = 0.0
            for i, got in enumerate(library.call(c.name, *c.inputs)):
                want = goldens[f"{c.name}.{i}"].astype(np.float64)
                # the value itself may be a sum that cancels
                scale = max(np.abs(want).max(initial=0), 1e-30 if i else 1.0)
                error = np.abs(got.astype(np.float64) - want).max(initial=0) / scale
                worst = max(worst, error) if error == error else math.inf
            tolerance = 1e-12 if all(a.dtype != np.float32 for a in c.inputs) and \
                c.tolerance < 1e-3 else c.tolerance
            ok = worst < tolerance
            bad += not ok
            print(f"{'ok  ' if ok else 'FAIL'} {c.name}: relative error {worst:.1e}")
    print(f"{len(cases) - bad} passed, {bad} failed")
    return bad > 0


def main():
    args = sys.argv[1:]
    options = [a.removeprefix("--then=") for a in args if a.startswith("--then=")]
    names = [a for a in args if not a.startswith("--")] or list(CASES)
    if "--write" in args:
        write(names)
        return 0
    return check(names, options)


if __name__ == "__main__":
    sys.exit(main())
