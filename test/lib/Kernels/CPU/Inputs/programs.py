"""Random programs of linalg, tensor and arith ops with a numpy reference.

Each op is evaluated over its whole iteration space by index arrays, straight
from the meaning of indexing maps, in double precision."""
import numpy as np

from kernelrun import tensor


class Dim:
    """An index expression: sum of coefficient * loop, plus a constant."""

    def __init__(self, terms, constant=0):
        self.terms, self.constant = terms, constant

    def text(self):
        parts = [f"d{d}" if c == 1 else f"d{d} * {c}" for d, c in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts)

    def size(self, extents):
        """Smallest tensor dim that holds every index."""
        return self.constant + sum(c * (extents[d] - 1) for d, c in self.terms) + 1

    def at(self, grid):
        return self.constant + sum((c * grid[d] for d, c in self.terms), np.zeros_like(grid[0]) if len(grid) else 0)


UNARY = [  # text lines with %x, %y result; numpy function
    (["%y = arith.negf %x : T"], lambda x: -x),
    (["%y = arith.mulf %x, %x : T"], lambda x: x * x),
    (["%c = arith.constant 0.5 : T", "%y = arith.addf %x, %c : T"], lambda x: x + 0.5),
    (["%c = arith.constant 0.0 : T", "%p = arith.cmpf ogt, %x, %c : T", "%y = arith.select %p, %x, %c : T"],
     lambda x: np.where(x > 0, x, 0)),
    (["%y = math.exp %x : T"], np.exp),
    (["%y = math.tanh %x : T"], np.tanh),
    (["%y = math.absf %x : T"], np.abs),
    (["%a = math.absf %x : T", "%c = arith.constant 1.0 : T", "%b = arith.addf %a, %c : T", "%y = math.rsqrt %b : T"],
     lambda x: 1 / np.sqrt(np.abs(x) + 1)),
]
BINARY = [
    (["%y = arith.addf %x, %z : T"], lambda x, z: x + z),
    (["%y = arith.subf %x, %z : T"], lambda x, z: x - z),
    (["%y = arith.mulf %x, %z : T"], lambda x, z: x * z),
    (["%y = arith.maximumf %x, %z : T"], np.maximum),
    (["%p = arith.cmpf ogt, %x, %z : T", "%w = arith.subf %z, %x : T", "%y = arith.select %p, %x, %w : T"],
     lambda x, z: np.where(x > z, x, z - x)),
]
REDUCE = [("addf", 0.0, np.add), ("maximumf", -3.0, np.maximum), ("minimumf", 3.0, np.minimum)]


class Program:
    def __init__(self, seed, dtype="f32", small=False):
        self.rng = np.random.default_rng(seed)
        self.T, self.small = dtype, small
        self.lines, self.args, self.values = [], [], {}  # values: name -> f64 array
        self.maps, self.results, self.count = [], [], 0
        self.inputs = []

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def pick(self, items):
        return items[self.rng.integers(len(items))]

    def argument(self, shape):
        name = f"%arg{len(self.args)}"
        value = self.rng.uniform(-1, 1, shape)
        if self.T == "f32":
            value = value.astype(np.float32)
        self.args.append(f"{name}: {tensor(shape, self.T)}")
        self.inputs.append(value)
        self.values[name] = value.astype(np.float64)
        return name

    def operand(self, shape):
        """A value of that shape: an earlier one if there is any."""
        shape = tuple(shape)
        fits = [n for n, v in self.values.items() if v.shape == shape]
        return self.pick(fits) if fits and self.rng.random() < 0.8 else self.argument(shape)

    def size(self):
        return int(self.pick([1, 2, 3, 5, 7, 8, 9, 16, 17] if not self.small else [1, 2, 3, 5]))

    def empty(self, shape):
        n = self.name()
        self.lines.append(f"{n} = tensor.empty() : {tensor(shape, self.T)}")
        return n

    def fill(self, shape, value):
        c, n, e = self.name(), self.name(), self.empty(shape)
        self.lines.append(f"{c} = arith.constant {value:e} : {self.T}")
        self.lines.append(f"{n} = linalg.fill ins({c} : {self.T}) outs({e} : {tensor(shape, self.T)}) -> {tensor(shape, self.T)}")
        self.values[n] = np.full(shape, value)
        return n

    def generic(self, extents, maps, iterators, inputs, init, body, out_shape):
        loops = ", ".join(f"d{i}" for i in range(len(extents)))
        texts = ", ".join(f"affine_map<({loops}) -> ({', '.join(d.text() for d in m)})>" for m in maps)
        its = ", ".join(f'"{i}"' for i in iterators)
        T, n = self.T, self.name()
        ins = ""
        if inputs:
            ins = f"ins({', '.join(inputs)} : {', '.join(tensor(self.values[i].shape, T) for i in inputs)}) "
        args = ", ".join([f"%i{k}: {T}" for k in range(len(inputs))] + [f"%o: {T}"])
        self.lines.append(f"{n} = linalg.generic {{indexing_maps = [{texts}], iterator_types = [{its}]}} {ins}"
                          f"outs({init} : {tensor(out_shape, T)}) {{")
        self.lines.append(f"^bb0({args}):")
        self.lines += ["  " + line for line in body]
        self.lines.append(f"  linalg.yield %r : {T}")
        self.lines.append(f"}} -> {tensor(out_shape, T)}")
        return n

    def body(self, arity):
        """Lines computing %e of %i0..; the numpy function of it."""
        T, tag = self.T, self.count
        if arity == 0:
            return [f"%e = arith.constant 1.5 : {T}"], lambda *a: 1.5
        if arity == 1 or self.rng.random() < 0.2:
            lines, f = self.pick(UNARY)
            use = {"%x": "%i0", "%z": "%i0"}
            fn = lambda *a: f(a[0])  # noqa: E731
        else:
            lines, f = self.pick(BINARY)
            use = {"%x": "%i0", "%z": "%i1"}
            fn = lambda *a: f(a[0], a[1])  # noqa: E731
        out = []
        for line in lines:
            for k, v in list(use.items()) + [("%y", "%e"), ("%c", "%c_"), ("%p", "%p_"), ("%a", "%a_"), ("%b", "%b_"), ("%w", "%w_")]:
                line = line.replace(k + " ", v + " ").replace(k + ",", v + ",")
            out.append(line.replace(": T", ": " + T))
        if arity == 3:
            out = [line.replace("%e ", "%e0 ") for line in out] + [f"%e = arith.mulf %e0, %i2 : {T}"]
            g = fn
            fn = lambda *a: g(*a) * a[2]  # noqa: E731
        del tag
        return out, fn

    # ---- ops ----
    def pointwise(self):
        shape = self.values[self.pick(list(self.values))].shape if self.values and self.rng.random() < 0.8 else \
            tuple(self.size() for _ in range(self.rng.integers(0, 5)))
        rank = len(shape)
        maps, inputs = [], []
        for _ in range(self.rng.integers(1, 4)):
            dims = list(range(rank))
            r = self.rng.random()
            if r < 0.25:
                dims = [d for d in dims if self.rng.random() < 0.5]
            elif r < 0.4:
                dims = list(self.rng.permutation(dims))
            maps.append([Dim([(int(d), 1)]) for d in dims])
            inputs.append(self.operand([shape[d] for d in dims]))
        out = [Dim([(d, 1)]) for d in range(rank)]
        lines, f = self.body(len(inputs))
        n = self.generic(shape, maps + [out], ["parallel"] * rank, inputs, self.empty(shape),
                         [line.replace("%e ", "%r ") for line in lines], shape)
        grid = np.indices(shape) if rank else np.zeros((0,), int)
        got = [self.values[i][tuple(d.at(grid) for d in m)] for i, m in zip(inputs, maps)]
        self.values[n] = np.broadcast_to(np.asarray(f(*got), float), shape).copy()
        return n

    def reduction(self, mul=None):
        loops = self.rng.integers(1, 6)
        extents = [self.size() for _ in range(loops)]
        while np.prod(extents) > 60000:
            extents[int(np.argmax(extents))] = 2
        kinds = ["reduction" if self.rng.random() < 0.5 else "parallel" for _ in range(loops)]
        arity = int(self.rng.integers(1, 3)) if mul is None else 2
        maps, inputs = [], []
        todo = set(range(loops))
        for k in range(arity):
            dims = [int(d) for d in self.rng.permutation(loops) if self.rng.random() < 0.7 or (k == arity - 1 and d in todo)]
            if self.rng.random() < 0.5:
                dims.sort()
            exprs, pure = [], []
            while dims:
                if len(dims) > 1 and self.rng.random() < 0.3:
                    # A window. Both loops appear alone elsewhere, or the map is not invertible.
                    a, b = dims.pop(0), dims.pop(0)
                    exprs.append(Dim([(a, int(self.rng.integers(1, 3))), (b, int(self.rng.integers(1, 3)))]))
                else:
                    a = dims.pop(0)
                    exprs.append(Dim([(a, 1)]))
                    pure.append(a)
            maps.append(exprs)
            todo -= set(pure)
        if todo:  # give the loops that no map shows alone an operand of their own
            maps.append([Dim([(d, 1)]) for d in sorted(todo)])
            arity += 1
        inputs = [self.operand([d.size(extents) for d in m]) for m in maps]
        par = [d for d in range(loops) if kinds[d] == "parallel"]
        if self.rng.random() < 0.4:
            par = [int(d) for d in self.rng.permutation(par)]
        out = [Dim([(d, 1)]) for d in par]
        if len(out) > 1 and self.rng.random() < 0.25:  # scatter
            a, b = out.pop(), out.pop()
            out.append(Dim([(a.terms[0][0], int(self.rng.integers(1, 3))), (b.terms[0][0], 1)]))
            kinds = ["parallel" if [(d, 1)] in [o.terms for o in out] else "reduction" for d in range(loops)]
        shape = tuple(d.size(extents) for d in out)
        name, start, ufunc = self.pick(REDUCE) if mul is None else ("addf", 0.0, np.add)
        init = self.fill(shape, start) if self.rng.random() < 0.7 else self.operand(shape)
        if mul is None:
            lines, f = self.body(arity)
        else:
            lines, f = [f"%e = arith.mulf %i0, %i1 : {self.T}"], lambda x, y: x * y
            if arity == 3:
                lines, f = [f"%e0 = arith.mulf %i0, %i1 : {self.T}", f"%e = arith.mulf %e0, %i2 : {self.T}"], lambda x, y, z: x * y * z
        lines = lines + [f"%r = arith.{name} %o, %e : {self.T}"]
        n = self.generic(extents, maps + [out], kinds, inputs, init, lines, shape)
        grid = np.indices(extents)
        terms = np.broadcast_to(f(*[self.values[i][tuple(d.at(grid) for d in m)] for i, m in zip(inputs, maps)]), extents)
        value = self.values[init].copy()
        if out:
            ufunc.at(value, tuple(d.at(grid) for d in out), terms)
        else:
            value = ufunc(value, ufunc.reduce(terms.reshape(-1)))
        self.values[n] = np.asarray(value)
        return n

    def contraction(self):
        """A matmul-like op: batch, m, n, k loops, permuted, sometimes windowed."""
        nb, nm, nn, nk = self.rng.integers(0, 2), self.rng.integers(1, 3), self.rng.integers(1, 3), self.rng.integers(1, 3)
        loops = nb + nm + nn + nk
        big = [1, 3, 6, 7, 8, 9, 13, 16, 17, 31, 33, 40]
        extents = [int(self.pick(big if not self.small else [1, 2, 5, 9])) for _ in range(loops)]
        while np.prod([float(e) for e in extents]) > 300000:
            extents[int(np.argmax(extents))] = 3
        order = [int(x) for x in self.rng.permutation(loops)]
        batch, m, n, k = order[:nb], order[nb:nb + nm], order[nb + nm:nb + nm + nn], order[nb + nm + nn:]
        shuffle = (lambda x: [int(i) for i in self.rng.permutation(x)]) if self.rng.random() < 0.5 else (lambda x: list(x))
        a = [Dim([(d, 1)]) for d in shuffle(batch + m + k)]
        bdims = shuffle(batch + n + k)
        b = [Dim([(d, 1)]) for d in bdims]
        c = [Dim([(d, 1)]) for d in shuffle(batch + m + n)]
        if self.rng.random() < 0.3:  # a convolution: one dim n and one dim k of b slide together
            x, y = n[0], k[0]
            s, t = int(self.rng.integers(1, 3)), int(self.rng.integers(1, 3))
            b = [Dim([(x, s), (y, t)]) if e.terms[0][0] == x else e for e in b if e.terms[0][0] != y]
        kinds = ["reduction" if d in k else "parallel" for d in range(loops)]
        shape = tuple(d.size(extents) for d in c)
        inputs = [self.operand([d.size(extents) for d in e]) for e in (a, b)]
        init = self.fill(shape, 0.0) if self.rng.random() < 0.7 else self.operand(shape)
        name = self.generic(extents, [a, b, c], kinds, inputs, init,
                            [f"%e = arith.mulf %i0, %i1 : {self.T}", f"%r = arith.addf %o, %e : {self.T}"], shape)
        grid = np.indices(extents)
        terms = self.values[inputs[0]][tuple(d.at(grid) for d in a)] * self.values[inputs[1]][tuple(d.at(grid) for d in b)]
        value = self.values[init].copy()
        np.add.at(value, tuple(d.at(grid) for d in c), terms)
        self.values[name] = value
        return name

    def some(self, rank=lambda r: True):
        fits = [n for n, v in self.values.items() if rank(v.ndim) and v.size]
        return self.pick(fits) if fits else None

    def softmax(self):
        x = self.some(lambda r: r >= 1)
        if x is None:
            return None
        v = self.values[x]
        d = int(self.rng.integers(v.ndim))
        n, t = self.name(), tensor(v.shape, self.T)
        self.lines.append(f"{n} = linalg.softmax dimension({d}) ins({x} : {t}) outs({self.empty(v.shape)} : {t}) -> {t}".replace("outs(", "outs("))
        e = np.exp(v - v.max(d, keepdims=True))
        self.values[n] = e / e.sum(d, keepdims=True)
        return n

    def reshape(self):
        x = self.some(lambda r: r >= 2)
        if x is None:
            return None
        v, n = self.values[x], self.name()
        at = int(self.rng.integers(v.ndim - 1))
        groups = [[i] for i in range(at)] + [[at, at + 1]] + [[i] for i in range(at + 2, v.ndim)]
        shape = v.shape[:at] + (v.shape[at] * v.shape[at + 1],) + v.shape[at + 2:]
        self.lines.append(f"{n} = tensor.collapse_shape {x} {groups} : {tensor(v.shape, self.T)} into {tensor(shape, self.T)}")
        self.values[n] = v.reshape(shape)
        if self.rng.random() < 0.5:
            y, back = self.name(), v.shape[:at] + (v.shape[at + 1], v.shape[at]) + v.shape[at + 2:]
            self.lines.append(f"{y} = tensor.expand_shape {n} {groups} output_shape {list(back)} : {tensor(shape, self.T)} into {tensor(back, self.T)}")
            self.values[y] = self.values[n].reshape(back)
            return y
        return n

    def slice_of(self, v):
        offsets, sizes, strides = [], [], []
        for d in v.shape:
            s = int(self.rng.integers(1, 3))
            size = int(self.rng.integers(1, (d - 1) // s + 2))
            offsets.append(int(self.rng.integers(0, d - s * (size - 1))))
            sizes.append(size)
            strides.append(s)
        return offsets, sizes, strides, tuple(slice(o, o + s * (z - 1) + 1, s) for o, z, s in zip(offsets, sizes, strides))

    def extract(self):
        x = self.some(lambda r: r >= 1)
        if x is None:
            return None
        v, n = self.values[x], self.name()
        o, z, s, at = self.slice_of(v)
        self.lines.append(f"{n} = tensor.extract_slice {x}{o} {z} {s} : {tensor(v.shape, self.T)} to {tensor(z, self.T)}".replace(f"{x}[", f"{x}["))
        self.values[n] = v[at].copy()
        return n

    def insert(self):
        x = self.some(lambda r: r >= 1)
        if x is None:
            return None
        v = self.values[x]
        o, z, s, at = self.slice_of(v)
        src, n = self.operand(z), self.name()
        self.lines.append(f"{n} = tensor.insert_slice {src} into {x}{o} {z} {s} : {tensor(z, self.T)} into {tensor(v.shape, self.T)}")
        value = v.copy()
        value[at] = self.values[src]
        self.values[n] = value
        return n

    def pad(self):
        x = self.some(lambda r: r >= 1)
        if x is None:
            return None
        v, n, c = self.values[x], self.name(), self.name()
        low = [int(self.rng.integers(0, 3)) for _ in v.shape]
        high = [int(self.rng.integers(0, 3)) for _ in v.shape]
        shape = tuple(a + b + d for a, b, d in zip(low, high, v.shape))
        self.lines.append(f"{c} = arith.constant 0.25 : {self.T}")
        self.lines.append(f"{n} = tensor.pad {x} low{low} high{high} {{")
        self.lines.append("^bb0(" + ", ".join(f"%p{i}: index" for i in range(v.ndim)) + "):")
        self.lines.append(f"  tensor.yield {c} : {self.T}")
        self.lines.append(f"}} : {tensor(v.shape, self.T)} to {tensor(shape, self.T)}")
        self.values[n] = np.pad(v, list(zip(low, high)), constant_values=0.25)
        return n

    def concat(self):
        x = self.some(lambda r: r >= 1)
        if x is None:
            return None
        v = self.values[x]
        d = int(self.rng.integers(v.ndim))
        other = self.operand(v.shape[:d] + (self.size(),) + v.shape[d + 1:])
        n = self.name()
        w = self.values[other]
        y = np.concatenate([v, w], d)
        self.lines.append(f"{n} = tensor.concat dim({d}) {x}, {other} : ({tensor(v.shape, self.T)}, {tensor(w.shape, self.T)}) -> {tensor(y.shape, self.T)}")
        self.values[n] = y
        return n

    def build(self, name, ops):
        made = []
        kinds = [self.pointwise] * 4 + [self.reduction] * 3 + [self.contraction] * 3 + [
            self.softmax, self.reshape, self.extract, self.insert, self.pad, self.concat]
        while len(made) < ops:
            n = self.pick(kinds)()
            if n is None or self.values[n].size > 200000:
                if n is None:
                    continue
            if not np.all(np.isfinite(self.values[n])) or np.abs(self.values[n]).max(initial=0) > 1e4:
                self.values.pop(n)
                made.append(None)
                continue
            made.append(n)
        outs = [n for n in dict.fromkeys(x for x in made if x) if self.rng.random() < 0.4]
        last = [x for x in made if x]
        if last and last[-1] not in outs:
            outs.append(last[-1])
        self.results = outs
        types = ", ".join(tensor(self.values[o].shape, self.T) for o in outs)
        text = f"func.func @{name}({', '.join(self.args)}) -> ({types}) {{\n"
        text += "".join("  " + line + "\n" for line in self.lines)
        text += f"  return {', '.join(outs)} : {types}\n}}\n" if outs else "  return\n}\n"
        return text
