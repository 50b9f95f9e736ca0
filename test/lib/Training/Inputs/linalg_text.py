"""Builds linalg programs as text: einsum-like specs, bodies by operator overloading."""
import math

import numpy as np

HEX = {"f32": ("0x7F800000", "0xFF800000"),
       "f64": ("0x7FF0000000000000", "0xFFF0000000000000")}


class Scalar:
    """A value in a body."""

    def __init__(self, function, name, type_):
        self.f, self.name, self.type = function, name, type_

    def binary(self, op, other):
        if not isinstance(other, Scalar):
            other = self.f.constant(other, self.type)
        return self.f.op(f"{op} {self.name}, {other.name} : {self.type}", self.type)

    def __add__(self, o): return self.binary("arith.addf", o)
    def __sub__(self, o): return self.binary("arith.subf", o)
    def __mul__(self, o): return self.binary("arith.mulf", o)
    def __truediv__(self, o): return self.binary("arith.divf", o)
    def __neg__(self): return self.f.op(f"arith.negf {self.name} : {self.type}", self.type)
    __radd__, __rmul__ = __add__, __mul__
    def max(self, o): return self.binary("arith.maximumf", o)
    def min(self, o): return self.binary("arith.minimumf", o)
    def pow(self, o): return self.binary("math.powf", o)
    def rem(self, o): return self.binary("arith.remf", o)
    def atan2(self, o): return self.binary("math.atan2", o)
    def copysign(self, o): return self.binary("math.copysign", o)
    def math(self, name): return self.f.op(f"math.{name} {self.name} : {self.type}", self.type)

    def cast(self, type_):
        bits = lambda t: int(t.lstrip("bf"))
        op = "extf" if bits(type_) > bits(self.type) else "truncf"
        return self.f.op(f"arith.{op} {self.name} : {self.type} to {type_}", type_)

    def greater(self, o):
        r = self.binary("arith.cmpf ogt,", o)
        r.type = "i1"
        return r

    def choose(self, x, y):
        type_ = x.type if isinstance(x, Scalar) else y.type
        x, y = [v if isinstance(v, Scalar) else self.f.constant(v, type_) for v in (x, y)]
        return self.f.op(f"arith.select {self.name}, {x.name}, {y.name} : {type_}", type_)


class Tensor:
    def __init__(self, name, shape, type_):
        self.name, self.shape, self.dtype = name, tuple(shape), type_

    @property
    def type(self):
        return f"tensor<{''.join(f'{d}x' for d in self.shape)}{self.dtype}>"


class Function:
    """One function; `dtype` is the default element type."""

    def __init__(self, name, dtype="f32"):
        self.name, self.dtype = name, dtype
        self.lines, self.count, self.args = [], 0, []

    def fresh(self):
        self.count += 1
        return f"%v{self.count}"

    def arg(self, shape, dtype=None):
        self.args.append(Tensor(f"%a{len(self.args)}", shape, dtype or self.dtype))
        return self.args[-1]

    def emit(self, line):
        self.lines.append("  " + line)

    def op(self, text, type_):
        name = self.fresh()
        self.emit(f"{name} = {text}")
        return Scalar(self, name, type_)

    def constant(self, value, type_):
        text = HEX[type_][value < 0] if math.isinf(value) else f"{float(value):.17e}"
        return self.op(f"arith.constant {text} : {type_}", type_)

    def raw(self, text, shape, dtype=None):
        r = Tensor(self.fresh(), shape, dtype or self.dtype)
        self.emit(f"{r.name} = {text}")
        return r

    def empty(self, shape, dtype=None):
        t = Tensor("", shape, dtype or self.dtype).type
        return self.raw(f"tensor.empty() : {t}", shape, dtype)

    def fill(self, shape, value, dtype=None):
        e = self.empty(shape, dtype)
        c = self.constant(value, e.dtype)
        return self.raw(f"linalg.fill ins({c.name} : {e.dtype}) outs({e.name} : {e.type}) "
                        f"-> {e.type}", shape, dtype)

    def index(self, dim):
        return self.op(f"linalg.index {dim} : index", "index")

    def generic(self, spec, values, body, init=None, dtype=None):
        """'ij,j->i': letters missing on the right are reduced; '0' is a broadcast dim of extent 1.

        body(*scalars[, accumulator]); init: None (elementwise), a number or a tensor.
        """
        ins, out = spec.split("->")
        ins = ins.split(",") if values else []
        extent, letters = {}, []
        for dims, v in zip(ins, values):
            for letter, d in zip(dims, v.shape):
                if letter != "0":
                    extent[letter] = d
        for dims in ins + [out]:
            letters += [c for c in dict.fromkeys(dims) if c not in letters and c != "0"]
        shape = [extent[c] for c in out]
        if isinstance(init, Tensor):
            start = init
        else:
            start = self.empty(shape, dtype) if init is None else self.fill(shape, init, dtype)
        loops = ", ".join("d_" + c for c in letters)
        maps = ", ".join(
            f"affine_map<({loops}) -> ({', '.join('0' if c == '0' else 'd_' + c for c in s)})>"
            for s in ins + [out])
        iterators = ", ".join('"parallel"' if c in out else '"reduction"' for c in letters)
        r = Tensor(self.fresh(), start.shape, start.dtype)
        operands = ""
        if values:
            operands = (f"ins({', '.join(v.name for v in values)} : "
                        f"{', '.join(v.type for v in values)}) ")
        self.emit(f"{r.name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = "
                  f"[{iterators}]}} {operands}outs({start.name} : {start.type}) {{")
        args = [Scalar(self, self.fresh(), v.dtype) for v in [*values, start]]
        self.emit(f"^bb0({', '.join(f'{a.name}: {a.type}' for a in args)}):")
        y = body(*args) if init is not None else body(*args[:-1])
        self.emit(f"linalg.yield {y.name} : {start.dtype}")
        self.emit(f"}} -> {r.type}")
        return r

    def einsum(self, spec, a, b):
        return self.generic(spec, [a, b], lambda x, y, c: c + x * y, 0.0)

    def sum(self, spec, a):
        return self.generic(spec, [a], lambda x, c: c + x, 0.0)

    def max(self, spec, a):
        return self.generic(spec, [a], lambda x, c: c.max(x), -math.inf)

    def dot(self, a, b):
        """Sum of the products of all elements: a loss with a known cotangent."""
        dims = "abcdef"[:len(a.shape)]
        return self.generic(f"{dims},{dims}->", [a, b], lambda x, y, c: c + x * y, 0.0)

    def softmax(self, x, dim):
        e = self.empty(x.shape, x.dtype)
        return self.raw(f"linalg.softmax dimension({dim}) ins({x.name} : {x.type}) "
                        f"outs({e.name} : {e.type}) -> {e.type}", x.shape, x.dtype)

    def conv(self, x, w, stride=1, dilation=1):
        """NHWC by HWCF."""
        n, h, wd, _ = x.shape
        k, l, _, f = w.shape
        size = lambda i, k: (i - dilation * (k - 1) - 1) // stride + 1
        z = self.fill((n, size(h, k), size(wd, l), f), 0.0, x.dtype)
        return self.raw(
            f"linalg.conv_2d_nhwc_hwcf {{strides = dense<{stride}> : tensor<2xi64>, dilations = "
            f"dense<{dilation}> : tensor<2xi64>}} ins({x.name}, {w.name} : {x.type}, {w.type}) "
            f"outs({z.name} : {z.type}) -> {z.type}", z.shape, x.dtype)

    def pool(self, x, kind, window, stride, dilation=1):
        """NHWC; kind is sum or max."""
        n, h, wd, c = x.shape
        size = lambda i: (i - dilation * (window - 1) - 1) // stride + 1
        z = self.fill((n, size(h), size(wd), c), 0.0 if kind == "sum" else -math.inf, x.dtype)
        w = self.empty((window, window), x.dtype)
        return self.raw(
            f"linalg.pooling_nhwc_{kind} {{strides = dense<{stride}> : tensor<2xi64>, dilations = "
            f"dense<{dilation}> : tensor<2xi64>}} ins({x.name}, {w.name} : {x.type}, {w.type}) "
            f"outs({z.name} : {z.type}) -> {z.type}", z.shape, x.dtype)

    def text(self, *results):
        args = ", ".join(f'{a.name}: {a.type} {{flow.name = "a{i}"}}'
                         for i, a in enumerate(self.args))
        types = ", ".join(f'{r.type} {{flow.name = "r{i}"}}' for i, r in enumerate(results))
        body = "\n".join(self.lines)
        return (f"func.func @{self.name}({args}) -> ({types}) {{\n{body}\n  return "
                f"{', '.join(r.name for r in results)} : {', '.join(r.type for r in results)}\n}}\n")


# Composites as an importer would write them.

def log_softmax(f, x):
    m = f.max("ij->i", x)
    z = f.generic("ij,i->ij", [x, m], lambda a, b: a - b)
    s = f.generic("ij->i", [z], lambda a, c: c + a.math("exp"), 0.0)
    return f.generic("ij,i->ij", [z, s], lambda a, b: a - b.math("log"))


def gelu(f, x, spec="ij"):
    return f.generic(f"{spec}->{spec}", [x],
                     lambda a: a * 0.5 * ((a * math.sqrt(0.5)).math("erf") + 1.0))


def relu(f, x, spec="ij"):
    return f.generic(f"{spec}->{spec}", [x], lambda a: a.greater(0.0).choose(a, 0.0))


def layernorm(f, x, g, b, eps=1e-5):
    n = x.shape[1]
    mean = f.generic("i->i", [f.sum("ij->i", x)], lambda a: a * (1.0 / n))
    xc = f.generic("ij,i->ij", [x, mean], lambda a, b: a - b)
    var = f.generic("i->i", [f.generic("ij->i", [xc], lambda a, c: c + a * a, 0.0)],
                    lambda a: a * (1.0 / n))
    rs = f.generic("i->i", [var], lambda a: (a + eps).math("rsqrt"))
    return f.generic("ij,i,j,j->ij", [xc, rs, g, b], lambda a, r, g, b: a * r * g + b)


def gather_rows(f, table, index):
    """table[index], for an index of rank 1 or 2."""
    dims = "nsd"[:len(index.shape)] + "d" if len(index.shape) == 1 else "nsd"
    out = f.empty((*index.shape, table.shape[1]), table.dtype)
    loops, iterators = ", ".join(dims), ", ".join(['"parallel"'] * len(dims))
    r = Tensor(f.fresh(), out.shape, table.dtype)
    f.emit(f"{r.name} = linalg.generic {{indexing_maps = [affine_map<({loops}) -> "
           f"({', '.join(dims[:-1])})>, affine_map<({loops}) -> ({loops})>], iterator_types = "
           f"[{iterators}]}} ins({index.name} : {index.type}) "
           f"outs({out.name} : {out.type}) {{")
    i, o = f.fresh(), f.fresh()
    f.emit(f"^bb0({i}: {index.dtype}, {o}: {table.dtype}):")
    k = f.op(f"arith.index_cast {i} : {index.dtype} to index", "index")
    d = f.index(len(dims) - 1)
    e = f.op(f"tensor.extract {table.name}[{k.name}, {d.name}] : {table.type}", table.dtype)
    f.emit(f"linalg.yield {e.name} : {table.dtype}")
    f.emit(f"}} -> {r.type}")
    return r


def numpy_type(dtype):
    import ml_dtypes
    return {"f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32,
            "i1": np.bool_, "bf16": ml_dtypes.bfloat16}[dtype]
