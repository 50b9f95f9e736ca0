#!/usr/bin/env python3
"""Random linalg programs whose gradients are checked by differences in f64.

    random_programs.py COUNT [SEED]    FLOW_FULL=1 takes 20 times as many

Program i has the seed SEED + i and is printed when it fails. The derivative along a random direction of
all arguments must be the product of the gradients with it.
"""
import math
import os
import sys
import tempfile

import numpy as np

import native
from linalg_text import Function, Tensor

SCALE = 0.5


class Program:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.f = Function(f"f{seed}", "f64")
        self.values = [self.f.arg(self.shape()) for _ in range(self.rng.integers(1, 4))]
        steps = [self.unary, self.binary, self.broadcast, self.contract, self.reduce,
                 self.permute, self.slice, self.pad, self.reshape, self.concat, self.softmax,
                 self.select, self.window, self.normalize, self.loop]
        for _ in range(self.rng.integers(2, 8)):
            self.pick(steps)()
        terms = [self.f.generic(f"{self.dims(v)}->", [v], lambda a, c: c + a.math("tanh"), 0.0)
                 for v in self.values[-3:]]
        total = terms[0]
        for t in terms[1:]:
            total = self.f.generic(",->", [total, t], lambda a, b: a + b)
        self.text = self.f.text(total)

    def pick(self, items):
        return items[self.rng.integers(len(items))]

    def shape(self, rank=None):
        rank = self.rng.integers(1, 4) if rank is None else rank
        return tuple(int(d) for d in self.rng.integers(1, 6, rank))

    def dims(self, v):
        return "abcdef"[:len(v.shape)]

    def value(self, least=1, most=4):
        fitting = [v for v in self.values if least <= len(v.shape) <= most]
        if fitting:
            return self.pick(fitting)
        v = self.f.arg(self.shape(least))
        self.values.append(v)
        return v

    def keep(self, v):
        """Bounds a value, so that programs do not grow beyond what differences can see."""
        d = self.dims(v)
        if self.rng.random() < 0.5:
            v = self.f.generic(f"{d}->{d}", [v], lambda a: a.math("tanh"))
        self.values.append(v)

    def map1(self, v, body):
        d = self.dims(v)
        self.keep(self.f.generic(f"{d}->{d}", [v], body))

    def unary(self):
        body = self.pick([
            lambda a: a.math("tanh"), lambda a: a.math("sin"), lambda a: (a * 0.3).math("exp"),
            lambda a: (a * a + 1.0).math("sqrt"), lambda a: (a * a + 0.5).math("log"),
            lambda a: a.math("erf") * a, lambda a: (a * a + 1.0).math("rsqrt"),
            lambda a: a.math("cos") * 0.7 + a.pow(3.0) * 0.1, lambda a: -a])
        self.map1(self.value(), body)

    def binary(self):
        x = self.value()
        same = [v for v in self.values if v.shape == x.shape]
        y, d = self.pick(same), self.dims(x)
        body = self.pick([lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b,
                          lambda a, b: a / (b * b + 1.0), lambda a, b: a.max(b * 1.1),
                          lambda a, b: a.min(b * 0.9)])
        self.keep(self.f.generic(f"{d},{d}->{d}", [x, y], body))

    def broadcast(self):
        x = self.value(2)
        d = self.dims(x)
        kept = [i for i in range(len(d)) if self.rng.random() < 0.5]
        v = self.f.arg([x.shape[i] for i in kept])
        spec = "".join(d[i] for i in kept)
        self.values.append(v)
        self.keep(self.f.generic(f"{d},{spec}->{d}", [x, v], lambda a, b: a * b + b))

    def contract(self):
        x = self.value(1, 3)
        d = self.dims(x)
        shared = [i for i in range(len(d)) if self.rng.random() < 0.6] or [0]
        fresh = "xy"[:self.rng.integers(0, 3)]
        spec = list("".join(d[i] for i in shared) + fresh)
        self.rng.shuffle(spec)
        extents = dict(zip(d, x.shape)) | {c: int(self.rng.integers(1, 5)) for c in fresh}
        w = self.f.arg([extents[c] for c in spec])
        self.values.append(w)
        out = [c for c in d + fresh if c in fresh or d.index(c) not in shared or
               self.rng.random() < 0.3]
        self.rng.shuffle(out)
        out = out[:4]
        self.keep(self.f.einsum(f"{d},{''.join(spec)}->{''.join(out)}", x, w))

    def reduce(self):
        x = self.value(2)
        d = self.dims(x)
        out = "".join(c for c in d if self.rng.random() < 0.5)
        if self.rng.random() < 0.3:
            self.keep(self.f.max(f"{d}->{out}", x))
        else:
            self.keep(self.f.generic(f"{d}->{out}", [x], lambda a, c: c + a * a, 0.0))

    def permute(self):
        x = self.value(2)
        d = list(self.dims(x))
        out = d.copy()
        self.rng.shuffle(out)
        self.keep(self.f.generic(f"{''.join(d)}->{''.join(out)}", [x], lambda a: a))

    def slice(self):
        x = self.value()
        offsets, sizes, strides = [], [], []
        for n in x.shape:
            s = int(self.rng.integers(1, 3))
            o = int(self.rng.integers(0, n))
            strides.append(s)
            offsets.append(o)
            sizes.append(int(self.rng.integers(1, (n - o - 1) // s + 2)))
        t = Tensor("", sizes, "f64").type
        self.keep(self.f.raw(f"tensor.extract_slice {x.name}{offsets} {sizes} {strides} : "
                             f"{x.type} to {t}", sizes))

    def pad(self):
        x = self.value()
        low, high = [[int(v) for v in self.rng.integers(0, 3, len(x.shape))] for _ in range(2)]
        shape = [l + n + h for l, n, h in zip(low, x.shape, high)]
        c = self.f.constant(0.7, "f64")
        args = ", ".join(f"%i{i}: index" for i in range(len(shape)))
        t = Tensor("", shape, "f64").type
        self.keep(self.f.raw(f"tensor.pad {x.name} low{low} high{high} {{\n^bb0({args}):\n  "
                             f"tensor.yield {c.name} : f64\n}} : {x.type} to {t}", shape))

    def reshape(self):
        x = self.value(2)
        r = len(x.shape)
        at = int(self.rng.integers(0, r - 1))
        groups = [[i] for i in range(at)] + [[at, at + 1]] + [[i] for i in range(at + 2, r)]
        shape = [math.prod(x.shape[i] for i in g) for g in groups]
        t = Tensor("", shape, "f64").type
        y = self.f.raw(f"tensor.collapse_shape {x.name} {groups} : {x.type} into {t}", shape)
        if self.rng.random() < 0.5:
            y = self.f.raw(f"tensor.expand_shape {y.name} {groups} output_shape "
                           f"{list(x.shape)} : {y.type} into {x.type}", x.shape)
        self.keep(y)

    def concat(self):
        x = self.value()
        dim = int(self.rng.integers(len(x.shape)))
        rest = lambda v: [n for i, n in enumerate(v.shape) if i != dim]
        y = self.pick([v for v in self.values
                       if len(v.shape) == len(x.shape) and rest(v) == rest(x)])
        shape = list(x.shape)
        shape[dim] += y.shape[dim]
        t = Tensor("", shape, "f64").type
        self.keep(self.f.raw(f"tensor.concat dim({dim}) {x.name}, {y.name} : ({x.type}, {y.type}) "
                             f"-> {t}", shape))

    def softmax(self):
        x = self.value()
        self.keep(self.f.softmax(x, int(self.rng.integers(len(x.shape)))))

    def select(self):
        self.map1(self.value(), self.pick([
            lambda a: a.greater(0.1).choose(a, a * 0.2),
            lambda a: a.greater(-0.1).choose(a.math("exp"), 0.0),
            lambda a: (a * 0.5).greater(0.05).choose((a + 0.01).math("sqrt"), a * a)]))

    def window(self):
        n, h, w, c = [int(v) for v in self.rng.integers([1, 4, 4, 1], [3, 9, 9, 4])]
        x = self.f.arg((n, h, w, c))
        k, s, d = [int(v) for v in self.rng.integers(1, 4, 3)]
        while d * (k - 1) + 1 > min(h, w):
            k -= 1
        kind = self.pick(["conv", "conv", "sum", "max"])
        self.values.append(x)
        if kind == "conv":
            weights = self.f.arg((k, k, c, int(self.rng.integers(1, 4))))
            self.values.append(weights)
            self.keep(self.f.conv(x, weights, s, d))
        else:
            self.keep(self.f.pool(x, kind, k, s, d))

    def normalize(self):
        x = self.value(2, 3)
        d = self.dims(x)
        row, n = d[:-1], x.shape[-1]
        mean = self.f.generic(f"{row}->{row}", [self.f.sum(f"{d}->{row}", x)],
                              lambda a: a * (1 / n))
        xc = self.f.generic(f"{d},{row}->{d}", [x, mean], lambda a, b: a - b)
        square = self.f.generic(f"{d}->{row}", [xc], lambda a, c: c + a * a, 0.0)
        self.keep(self.f.generic(f"{d},{row}->{d}", [xc, square],
                                 lambda a, v: a * (v * (1 / n) + 0.1).math("rsqrt")))

    def loop(self):
        x = self.value(1, 2)
        d, f, k = self.dims(x), self.f, self.f.count
        for name, v in (("lo", 0), ("up", int(self.rng.integers(0, 4))), ("st", 1)):
            f.emit(f"%{name}{k} = arith.constant {v} : index")
        r = Tensor(f"%loop{k}", x.shape, "f64")
        f.emit(f"{r.name} = scf.for %i{k} = %lo{k} to %up{k} step %st{k} iter_args(%c{k} = "
               f"{x.name}) -> ({x.type}) {{")
        y = f.generic(f"{d},{d}->{d}", [Tensor(f"%c{k}", x.shape, "f64"), x],
                      lambda a, b: (a * 0.8 + b * 0.3).math("sin"))
        f.emit(f"scf.yield {y.name} : {y.type}")
        f.emit("}")
        self.keep(r)


def main():
    count = int(sys.argv[1]) * (20 if os.environ.get("FLOW_FULL") == "1" else 1)
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    programs = [Program(seed) for seed in range(first, first + count)]
    text = "".join(p.text for p in programs)
    gradients = native.differentiate(text, {p.f.name: range(len(p.f.args)) for p in programs},
                                     ["flow-lower-scatter-windows"])
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        library = native.Library(gradients, folder + "/gradients")
        forward = native.Library(native.run(["flow-opt"], input=text), folder + "/forward")
        for p, seed in zip(programs, range(first, first + count)):
            rng = np.random.default_rng(seed)
            x = [rng.standard_normal(a.shape) * SCALE for a in p.f.args]
            u = [rng.standard_normal(a.shape) for a in p.f.args]
            _, *g = library.call(p.f.name, *x)
            want = sum(float(np.vdot(a, b)) for a, b in zip(g, u))
            error = math.inf
            for h in (1e-6, 1e-7, 1e-5):  # a kink within one step is not within all
                ahead, behind = [forward.call(p.f.name, *[a + s * h * b for a, b in zip(x, u)])[0]
                                 for s in (1, -1)]
                got = float(ahead - behind) / (2 * h)
                error = min(error, abs(got - want) / (1 + abs(want)))
            if not error < 1e-6:
                bad += 1
                print(f"FAIL seed {seed}: differences give {got}, the gradient {want}")
                print(p.text)
    print(f"{count - bad} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
