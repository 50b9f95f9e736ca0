"""What random programs do not reach: several outputs, integers, narrow floats,
tables, coordinates, empty tensors, in-place pairs, control flow in bodies."""
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernelrun import BACKWARD, Module, tensor  # noqa: E402

ID2 = "affine_map<(i, j) -> (i, j)>"
ROW = "affine_map<(i, j) -> (i)>"
rng = np.random.default_rng(7)
failures = 0


def check(what, got, want, limit=1e-5):
    global failures
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        failures += 1
        print(f"{what}: shape {got.shape}, expected {want.shape}")
        return
    if want.dtype.kind in "bi":
        ok = np.array_equal(got, want)
    else:
        with np.errstate(invalid="ignore"):
            ok = np.all((np.abs(got.astype(np.float64) - want) <= limit * np.maximum(1, np.abs(want)))
                        | (got == want) | (np.isnan(got) & np.isnan(want)))
    if not ok:
        failures += 1
        print(f"{what}: wrong\n got {got.reshape(-1)[:8]}\nwant {want.reshape(-1)[:8]}")


def generic(maps, kinds, ins, outs, body, results):
    """Text of one generic; ins and outs are (name, type) pairs."""
    # Bodies see the function's names: give theirs a suffix.
    for name in set(re.findall(r"(%\w+)(?: =|: )", body)):
        body = re.sub(name + r"\b", name + "_", body)
    i = f"ins({', '.join(n for n, _ in ins)} : {', '.join(t for _, t in ins)}) " if ins else ""
    return (f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{', '.join(chr(34) + k + chr(34) for k in kinds)}]}} "
            f"{i}outs({', '.join(n for n, _ in outs)} : {', '.join(t for _, t in outs)}) {{\n{body}\n}} -> {results}")


def argmax():
    t, r, k = tensor([7, 19]), tensor([7]), tensor([7], "i64")
    body = """^bb0(%x: f32, %m: f32, %a: i64):
    %i = linalg.index 1 : index
    %c = arith.index_cast %i : index to i64
    %p = arith.cmpf ogt, %x, %m : f32
    %s = arith.select %p, %x, %m : f32
    %q = arith.select %p, %c, %a : i64
    linalg.yield %s, %q : f32, i64"""
    return f"""func.func @argmax(%x: {t}) -> ({r}, {k}) {{
  %z = arith.constant 0xFF800000 : f32
  %n = arith.constant -1 : i64
  %e = tensor.empty() : {r}
  %g = tensor.empty() : {k}
  %f = linalg.fill ins(%z : f32) outs(%e : {r}) -> {r}
  %h = linalg.fill ins(%n : i64) outs(%g : {k}) -> {k}
  %o:2 = {generic([ID2, ROW, ROW], ["parallel", "reduction"], [("%x", t)], [("%f", r), ("%h", k)], body, f"({r}, {k})")}
  return %o#0, %o#1 : {r}, {k}
}}
"""


def check_argmax(m):
    x = rng.integers(0, 9, (7, 19)).astype(np.float32)
    v, i = m["argmax"](x)
    check("argmax value", v, x.max(1))
    check("argmax index", i, x.argmax(1))


def integers():
    text = ""
    for T in ("i8", "i16", "i32", "i64"):
        t, r = tensor([5, 37], T), tensor([5], T)
        body = f"""^bb0(%a: {T}, %b: {T}, %o: {T}):
    %m = arith.muli %a, %b : {T}
    %s = arith.addi %m, %o : {T}
    linalg.yield %s : {T}"""
        cmp = f"""^bb0(%a: {T}, %b: {T}, %o: i1):
    %p = arith.cmpi slt, %a, %b : {T}
    linalg.yield %p : i1"""
        pick = f"""^bb0(%c: i1, %a: {T}, %b: {T}, %o: {T}):
    %d = arith.select %c, %a, %b : {T}
    linalg.yield %d : {T}"""
        p = tensor([5, 37], "i1")
        text += f"""func.func @int_{T}(%x: {t}, %y: {t}) -> ({r}, {p}, {t}) {{
  %z = arith.constant 3 : {T}
  %e = tensor.empty() : {r}
  %pe = tensor.empty() : {p}
  %te = tensor.empty() : {t}
  %f = linalg.fill ins(%z : {T}) outs(%e : {r}) -> {r}
  %o = {generic([ID2, ID2, ROW], ["parallel", "reduction"], [("%x", t), ("%y", t)], [("%f", r)], body, r)}
  %q = {generic([ID2] * 3, ["parallel"] * 2, [("%x", t), ("%y", t)], [("%pe", p)], cmp, p)}
  %w = {generic([ID2] * 4, ["parallel"] * 2, [("%q", p), ("%x", t), ("%y", t)], [("%te", t)], pick, t)}
  return %o, %q, %w : {r}, {p}, {t}
}}
"""
    return text


def check_integers(m):
    for T, d in (("i8", np.int8), ("i16", np.int16), ("i32", np.int32), ("i64", np.int64)):
        x, y = rng.integers(-100, 100, (2, 5, 37)).astype(d)
        s, p, w = m[f"int_{T}"](x, y)
        check(T + " sum", s, ((x * y).sum(1, dtype=d) + d(3)).astype(d))
        check(T + " less", p, x < y)
        check(T + " minimum", w, np.minimum(x, y))


def narrow():
    text = ""
    for T in ("f16", "bf16"):
        t, f = tensor([6, 21], T), tensor([6, 6], "f32")
        n = tensor([6, 21], T)
        body = f"""^bb0(%a: {T}, %b: {T}, %o: f32):
    %x = arith.extf %a : {T} to f32
    %y = arith.extf %b : {T} to f32
    %m = arith.mulf %x, %y : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32"""
        act = f"""^bb0(%a: {T}, %o: {T}):
    %x = arith.mulf %a, %a : {T}
    %y = math.exp %a : {T}
    %z = arith.addf %x, %y : {T}
    linalg.yield %z : {T}"""
        maps = ["affine_map<(m, n, k) -> (m, k)>", "affine_map<(m, n, k) -> (n, k)>", "affine_map<(m, n, k) -> (m, n)>"]
        text += f"""func.func @narrow_{T}(%x: {t}, %y: {t}) -> ({f}, {n}) {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : {f}
  %g = tensor.empty() : {n}
  %i = linalg.fill ins(%z : f32) outs(%e : {f}) -> {f}
  %o = {generic(maps, ["parallel", "parallel", "reduction"], [("%x", t), ("%y", t)], [("%i", f)], body, f)}
  %w = {generic([ID2, ID2], ["parallel"] * 2, [("%x", t)], [("%g", n)], act, n)}
  return %o, %w : {f}, {n}
}}
"""
    return text


def to_bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(x):
    return (x.astype(np.uint32) << 16).view(np.float32)


def check_narrow(m):
    x, y = rng.uniform(-1, 1, (2, 6, 21)).astype(np.float32)
    a, b = x.astype(np.float16), y.astype(np.float16)
    o, w = m["narrow_f16"](a, b)
    check("f16 contraction", o, a.astype(np.float64) @ b.astype(np.float64).T)
    check("f16 activation", w, a.astype(np.float64) ** 2 + np.exp(a.astype(np.float64)), 3e-3)
    a, b = to_bf16(x), to_bf16(y)
    o, w = m["narrow_bf16"](a, b)
    fa, fb = from_bf16(a).astype(np.float64), from_bf16(b).astype(np.float64)
    check("bf16 contraction", o, fa @ fb.T)
    check("bf16 activation", from_bf16(w), fa ** 2 + np.exp(fa), 2e-2)


def tables():
    t, k, r = tensor([11, 9]), tensor([4], "i64"), tensor([4, 9])
    body = """^bb0(%i: i64, %o: f32):
    %j = linalg.index 1 : index
    %x = arith.index_cast %i : i64 to index
    %v = tensor.extract %d[%x, %j] : tensor<11x9xf32>
    linalg.yield %v : f32"""
    double = """^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32"""
    offset = """^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.addi %i, %off : index
    %c = arith.index_cast %j : index to i64
    %f = arith.sitofp %c : i64 to f32
    %v = arith.addf %a, %f : f32
    linalg.yield %v : f32"""
    branch = """^bb0(%a: f32, %o: f32):
    %z = arith.constant 0.0 : f32
    %p = arith.cmpf olt, %a, %z : f32
    %v = scf.if %p -> (f32) {
      %n = arith.negf %a : f32
      scf.yield %n : f32
    } else {
      %q = math.sqrt %a : f32
      scf.yield %q : f32
    }
    linalg.yield %v : f32"""
    return f"""func.func @gather(%t: {t}, %k: {k}) -> {r} {{
  %g = tensor.empty() : {t}
  %d = {generic([ID2, ID2], ["parallel"] * 2, [("%t", t)], [("%g", t)], double, t)}
  %e = tensor.empty() : {r}
  %o = {generic([ROW, ID2], ["parallel"] * 2, [("%k", k)], [("%e", r)], body, r)}
  return %o : {r}
}}
func.func @coords(%c0: index, %c1: index, %x: {r}) -> {r} {{
  %off = affine.apply affine_map<(a, b) -> (a * 10 + b)>(%c0, %c1)
  %e = tensor.empty() : {r}
  %o = {generic([ID2, ID2], ["parallel"] * 2, [("%x", r)], [("%e", r)], offset, r)}
  return %o : {r}
}}
func.func @slice_at(%c0: index, %x: {t}) -> {tensor([3, 9])} {{
  %off = affine.apply affine_map<(a) -> (a * 3)>(%c0)
  %s = tensor.extract_slice %x[%off, 0] [3, 9] [1, 1] : {t} to {tensor([3, 9])}
  %e = tensor.empty() : {tensor([3, 9])}
  %o = {generic([ID2, ID2], ["parallel"] * 2, [("%s", tensor([3, 9]))], [("%e", tensor([3, 9]))], double, tensor([3, 9]))}
  return %o : {tensor([3, 9])}
}}
func.func @insert_at(%c0: index, %x: {t}, %y: {tensor([3, 9])}) -> {t} {{
  %off = affine.apply affine_map<(a) -> (a * 3)>(%c0)
  %s = tensor.insert_slice %y into %x[%off, 0] [3, 9] [1, 1] : {tensor([3, 9])} into {t}
  return %s : {t}
}}
func.func @branch(%x: {r}) -> {r} {{
  %e = tensor.empty() : {r}
  %o = {generic([ID2, ID2], ["parallel"] * 2, [("%x", r)], [("%e", r)], branch, r)}
  return %o : {r}
}}
func.func @table_constant() -> tensor<2x3xf32> {{
  %c = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %e = tensor.empty() : tensor<2x3xf32>
  %o = {generic([ID2, ID2], ["parallel"] * 2, [("%c", "tensor<2x3xf32>")], [("%e", "tensor<2x3xf32>")], double, "tensor<2x3xf32>")}
  return %o : tensor<2x3xf32>
}}
func.func @lookup(%x: {t}, %k: tensor<i64>) -> tensor<9xf32> {{
  %i = tensor.extract %k[] : tensor<i64>
  %j = arith.index_cast %i : i64 to index
  %s = tensor.extract_slice %x[%j, 0] [1, 9] [1, 1] : {t} to tensor<9xf32>
  %e = tensor.empty() : tensor<9xf32>
  %o = {generic(["affine_map<(i) -> (i)>"] * 2, ["parallel"], [("%s", "tensor<9xf32>")], [("%e", "tensor<9xf32>")], double, "tensor<9xf32>")}
  return %o : tensor<9xf32>
}}
func.func @tensor_arith(%x: {r}, %y: {r}) -> {r} {{
  %a = arith.addf %x, %y : {r}
  %b = math.exp %a : {r}
  %c = arith.constant dense<2.0> : {r}
  %d = arith.mulf %b, %c : {r}
  return %d : {r}
}}
"""


def check_tables(m):
    x, k, y = rng.uniform(-1, 1, (11, 9)).astype(np.float32), rng.integers(0, 11, 4), rng.uniform(-1, 1, (4, 9)).astype(np.float32)
    check("gather", m["gather"](x, k)[0], 2 * x[k])
    check("coordinates", m["coords"](y, coords=(2, 3))[0], y + 23 + np.arange(4)[:, None])
    check("slice at a coordinate", m["slice_at"](x, coords=(2,))[0], 2 * x[6:9])
    z = x.copy()
    z[3:6] = y[:3]
    check("insert at a coordinate", m["insert_at"](x, y[:3], coords=(1,))[0], z)
    check("branch in a body", m["branch"](y)[0], np.where(y < 0, -y, np.sqrt(np.abs(y))))
    check("constant table", m["table_constant"]()[0], 2 * np.arange(1, 7).reshape(2, 3).astype(np.float32))
    check("lookup", m["lookup"](x, np.int64(5))[0], 2 * x[5])
    check("arith on tensors", m["tensor_arith"](y, y)[0], 2 * np.exp(2 * y))


def empty():
    t, r = tensor([0, 5]), tensor([5])
    body = """^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32"""
    return f"""func.func @empty_sum(%x: {t}) -> ({r}, {t}, {tensor([2, 5])}) {{
  %z = arith.constant 1.5 : f32
  %e = tensor.empty() : {r}
  %f = linalg.fill ins(%z : f32) outs(%e : {r}) -> {r}
  %o = {generic(["affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (j)>"], ["reduction", "parallel"], [("%x", t)], [("%f", r)], body, r)}
  %g = tensor.empty() : {t}
  %h = linalg.copy ins(%x : {t}) outs(%g : {t}) -> {t}
  %p = tensor.pad %x low[1, 0] high[1, 0] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  }} : {t} to {tensor([2, 5])}
  return %o, %h, %p : {r}, {t}, {tensor([2, 5])}
}}
func.func @empty_matmul(%x: {tensor([3, 0])}, %y: {tensor([0, 4])}) -> {tensor([3, 4])} {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : {tensor([3, 4])}
  %f = linalg.fill ins(%z : f32) outs(%e : {tensor([3, 4])}) -> {tensor([3, 4])}
  %o = linalg.matmul ins(%x, %y : {tensor([3, 0])}, {tensor([0, 4])}) outs(%f : {tensor([3, 4])}) -> {tensor([3, 4])}
  return %o : {tensor([3, 4])}
}}
"""


def check_empty(m):
    s, c, p = m["empty_sum"](np.zeros((0, 5), np.float32))
    check("sum of nothing", s, np.full(5, 1.5))
    check("copy of nothing", c, np.zeros((0, 5), np.float32))
    check("pad of nothing", p, np.full((2, 5), 1.5))
    check("matmul over nothing", m["empty_matmul"](np.zeros((3, 0)), np.zeros((0, 4)))[0], np.zeros((3, 4)))


class Rows:
    """Writes a function of generics over a space [R, C]: f full, r row, c column values."""

    def __init__(self, name, R, C, args, T="f32"):
        self.name, self.R, self.C, self.T, self.args = name, R, C, T, args
        self.kind, self.lines = dict(args), []

    def type(self, kind):
        return tensor({"f": [self.R, self.C], "r": [self.R], "c": [self.C]}[kind], self.T)

    def op(self, ins, out, body, reduce=None, init="0.0"):
        v = f"%v{len(self.lines)}"
        maps = {"f": ID2, "r": ROW, "c": "affine_map<(i, j) -> (j)>"}
        kinds = [self.kind[i] for i in ins]
        kinds_text = {None: ["parallel"] * 2, "r": ["parallel", "reduction"], "c": ["reduction", "parallel"]}[reduce]
        if out == "r" and not reduce:
            use, kinds_text = ["affine_map<(i) -> (i)>"] * (len(ins) + 1), ["parallel"]
        else:
            use = [maps[k] for k in kinds] + [maps[out]]
        t, T = self.type(out), self.T
        text = f"  {v}e = tensor.empty() : {t}\n"
        dest = v + "e"
        if reduce:
            text += f"  {v}c = arith.constant {init} : {T}\n  {v}i = linalg.fill ins({v}c : {T}) outs({v}e : {t}) -> {t}\n"
            dest = v + "i"
        head = "^bb0(" + ", ".join(f"%a{i}: {T}" for i in range(len(ins))) + f", %o: {T}):\n"
        lines = "\n".join(line.replace(": T", ": " + T) for line in body) + f"\nlinalg.yield %y : {T}"
        text += f"  {v} = " + generic(use, kinds_text, [(i, self.type(k)) for i, k in zip(ins, kinds)], [(dest, t)], head + lines, t) + "\n"
        self.lines.append(text)
        self.kind[v] = out
        return v

    def end(self, outs):
        types = ", ".join(self.type(self.kind[o]) for o in outs)
        args = ", ".join(f"{n}: {self.type(k)}" for n, k in self.args)
        return f"func.func @{self.name}({args}) -> ({types}) {{\n" + "".join(self.lines) + f"  return {', '.join(outs)} : {types}\n}}\n"


ADD = ["%y = arith.addf %a0, %o : T"]
MULADD = ["%p = arith.mulf %a0, %a1 : T", "%y = arith.addf %p, %o : T"]
ROW_SIZES = [(5, 37), (33, 101), (130, 256), (4, 3), (1, 8)]


def rows():
    text = ""
    for n, (R, C) in enumerate(ROW_SIZES):
        for T in ("f32", "f64"):
            f = Rows(f"layernorm_{n}_{T}", R, C, [("%x", "f"), ("%g", "c"), ("%b", "c")], T)
            s = f.op(["%x"], "r", ADD, "r")
            m = f.op([s], "r", [f"%n = arith.constant {1 / C:.17e} : T", "%y = arith.mulf %a0, %n : T"])
            d = f.op(["%x", m], "f", ["%y = arith.subf %a0, %a1 : T"])
            q = f.op([d], "r", ["%s = arith.mulf %a0, %a0 : T", "%y = arith.addf %s, %o : T"], "r")
            r = f.op([q], "r", [f"%n = arith.constant {1 / C:.17e} : T", "%e = arith.constant 1.0e-05 : T",
                                "%v = arith.mulf %a0, %n : T", "%w = arith.addf %v, %e : T", "%y = math.rsqrt %w : T"])
            y = f.op([d, r, "%g", "%b"], "f", ["%p = arith.mulf %a0, %a1 : T", "%q = arith.mulf %p, %a2 : T", "%y = arith.addf %q, %a3 : T"])
            text += f.end([y, m, r])
            f = Rows(f"backward_{n}_{T}", R, C, [("%x", "f"), ("%g", "c"), ("%dy", "f"), ("%m", "r"), ("%r", "r")], T)
            h = f.op(["%x", "%m", "%r"], "f", ["%p = arith.subf %a0, %a1 : T", "%y = arith.mulf %p, %a2 : T"])
            dg = f.op(["%dy", h], "c", MULADD, "c")
            db = f.op(["%dy"], "c", ADD, "c")
            u = f.op(["%dy", "%g"], "f", ["%y = arith.mulf %a0, %a1 : T"])
            s1, s2 = f.op([u], "r", ADD, "r"), f.op([u, h], "r", MULADD, "r")
            dx = f.op([u, h, s1, s2, "%r"], "f", [f"%n = arith.constant {1 / C:.17e} : T", "%p = arith.mulf %a1, %a3 : T",
                      "%q = arith.addf %a2, %p : T", "%w = arith.mulf %q, %n : T", "%z = arith.subf %a0, %w : T", "%y = arith.mulf %z, %a4 : T"])
            text += f.end([dx, dg, db])
            f = Rows(f"softmax_{n}_{T}", R, C, [("%x", "f")], T)
            mx = f.op(["%x"], "r", ["%y = arith.maximumf %a0, %o : T"], "r", "-1.0e+30")
            e = f.op(["%x", mx], "f", ["%d = arith.subf %a0, %a1 : T", "%y = math.exp %d : T"])
            s = f.op([e], "r", ADD, "r")
            p = f.op([e, s], "f", ["%y = arith.divf %a0, %a1 : T"])
            lse = f.op([mx, s], "r", ["%l = math.log %a1 : T", "%y = arith.addf %a0, %l : T"])
            col = f.op([p], "c", ADD, "c")
            text += f.end([p, lse, col])
    return text


def check_rows(m):
    for n, (R, C) in enumerate(ROW_SIZES):
        for T in ("f32", "f64"):
            limit = 2e-5 if T == "f32" else 1e-12
            d = np.float32 if T == "f32" else np.float64
            x, dy = (rng.uniform(-2, 2, (R, C)).astype(d) for _ in range(2))
            g, b = (rng.uniform(-2, 2, C).astype(d) for _ in range(2))
            X = x.astype(np.float64)
            mean, r = X.mean(1), 1 / np.sqrt(X.var(1) + 1e-5)
            H = (X - mean[:, None]) * r[:, None]
            got = m[f"layernorm_{n}_{T}"](x, g, b)
            for a, w in zip(got, (H * g + b, mean, r)):
                check(f"layernorm {R}x{C} {T}", a, w, limit)
            u = dy.astype(np.float64) * g
            want = (r[:, None] * (u - (u.sum(1)[:, None] + H * (u * H).sum(1)[:, None]) / C), (dy * H).sum(0), dy.astype(np.float64).sum(0))
            for a, w in zip(m[f"backward_{n}_{T}"](x, g, dy, mean, r), want):
                check(f"layernorm backward {R}x{C} {T}", a, w, limit * 5)
            e = np.exp(X - X.max(1, keepdims=True))
            p = e / e.sum(1, keepdims=True)
            for a, w in zip(m[f"softmax_{n}_{T}"](x), (p, np.log(e.sum(1)) + X.max(1), p.sum(0))):
                check(f"softmax {R}x{C} {T}", a, w, limit)


def update():
    t = tensor([9, 13])
    momentum = """^bb0(%v: f32, %g: f32, %o: f32):
    %m = arith.constant 0.9 : f32
    %a = arith.mulf %v, %m : f32
    %s = arith.addf %a, %g : f32
    linalg.yield %s : f32"""
    # Nesterov's form: the new weight needs the old momentum, too.
    weight = """^bb0(%w: f32, %n: f32, %v: f32, %o: f32):
    %d = arith.subf %n, %v : f32
    %s = arith.mulf %d, %lr : f32
    %r = arith.subf %w, %s : f32
    linalg.yield %r : f32"""
    return f"""func.func @update(%w: {t} , %v: {t}, %g: {t}, %l: tensor<f32>) -> ({t}, {t}) attributes {{flow.class}} {{
  %lr = tensor.extract %l[] : tensor<f32>
  %e = tensor.empty() : {t}
  %n = {generic([ID2] * 3, ["parallel"] * 2, [("%v", t), ("%g", t)], [("%e", t)], momentum, t)}
  %u = {generic([ID2] * 4, ["parallel"] * 2, [("%w", t), ("%n", t), ("%v", t)], [("%e", t)], weight, t)}
  return %u, %n : {t}, {t}
}}
"""


def check_update():
    m = Module(update(), form=True)
    (name, k), = m.kernels.items()
    w, v, g = rng.uniform(-1, 1, (3, 9, 13)).astype(np.float32)
    n = np.float32(0.9) * v + g
    values = {"v": v, "g": g, "w": w}
    # Kernel order: v, g, lr, w or so; found by what it computes.
    import itertools
    for order in itertools.permutations("vgw"):
        arrays = iter(order)
        ins = [np.float32(0.5) if shape == () else values[next(arrays)] for shape, _ in k.inputs]
        outs = k(*ins)
        want = {"n": n, "u": w - np.float32(0.5) * (n - v)}
        if np.allclose(outs[0], want["n"]) or np.allclose(outs[0], want["u"]):
            break
    else:
        check("update", 0.0, 1.0)
        return
    flags = [int(x) for x in re.findall(r"flow\.inplace = (\d+)", m.form)]
    if len(flags) != 2:
        check("two in-place pairs", len(flags), 2)
        return
    separate = [o.copy() for o in outs]
    together = k(*ins, inplace={0: flags[0], 1: flags[1]})
    check("update in place", together[0], separate[0], 0)
    check("update in place", together[1], separate[1], 0)


def check_threads():
    """Bits do not depend on the order in which chunks run, nor on a second run."""
    def mm(name, shape):
        a, b, c = shape
        return f"""func.func @{name}(%x: {tensor([a, c])}, %y: {tensor([c, b])}, %r: {tensor([a, b])}) -> ({tensor([a, b])}, {tensor([b])}) {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : {tensor([a, b])}
  %f = linalg.fill ins(%z : f32) outs(%e : {tensor([a, b])}) -> {tensor([a, b])}
  %o = linalg.matmul ins(%x, %y : {tensor([a, c])}, {tensor([c, b])}) outs(%f : {tensor([a, b])}) -> {tensor([a, b])}
  %g = tensor.empty() : {tensor([b])}
  %h = linalg.fill ins(%z : f32) outs(%g : {tensor([b])}) -> {tensor([b])}
  %s = linalg.generic {{indexing_maps = [{ID2}, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}} ins(%r : {tensor([a, b])}) outs(%h : {tensor([b])}) {{
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  }} -> {tensor([b])}
  return %o, %s : {tensor([a, b])}, {tensor([b])}
}}
"""
    text = mm("wide", (150, 520, 70)) + mm("tall", (520, 40, 70)) + mm("odd", (131, 67, 77))
    one, two = Module(text), Module(text, pool=BACKWARD)
    serial = Module(text, options="chunks=1")
    for name in ("wide", "tall", "odd"):
        ins = [rng.uniform(-1, 1, s).astype(np.float32) for s, _ in one[name].inputs]
        a, b, c, d = one[name](*ins), two[name](*ins), one[name](*ins), serial[name](*ins)
        for x, y, z in zip(a, b, c):
            check(name + ": order of chunks", x, y, 0)
            check(name + ": second run", x, z, 0)
        check(name, a[0], ins[0].astype(np.float64) @ ins[1], 1e-4)
        check(name + ": column sums", a[1], ins[2].sum(0), 1e-4)
        check(name + ": one chunk", d[0], a[0], 0)


if __name__ == "__main__":
    parts = [(argmax, check_argmax), (integers, check_integers), (narrow, check_narrow), (tables, check_tables),
             (empty, check_empty), (rows, check_rows)]
    module = Module("".join(text() for text, _ in parts))
    for _, run in parts:
        run(module)
    check_update()
    check_threads()
    print("failures:", failures)
    sys.exit(failures != 0)
