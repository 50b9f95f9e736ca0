"""Operators as flow.compute regions, for tests of the derived signatures.

Each function below writes one operator for given dims, with its inits inside.
"""


class Region:
    def __init__(self):
        self.lines, self.count, self.arguments = [], 0, []

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def argument(self, shape, element="f32"):
        name = f"%a{len(self.arguments)}"
        self.arguments.append((name, tuple(shape), element))
        return (name, tuple(shape), element)

    def add(self, text, shape, element="f32"):
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return (name, tuple(shape), element)

    def constant(self, value, element="f32"):
        spelled = value if isinstance(value, str) else f"{float(value)!r}" if element[0] == "f" else str(int(value))
        return self.add(f"arith.constant {spelled} : {element}", (), element)

    def empty(self, shape, element="f32"):
        return self.add(f"tensor.empty() : {tensor(shape, element)}", shape, element)

    def fill(self, shape, value, element="f32"):
        c, e = self.constant(value, element), self.empty(shape, element)
        t = tensor(shape, element)
        return self.add(f"linalg.fill ins({c[0]} : {element}) outs({e[0]} : {t}) -> {t}", shape, element)

    def generic(self, inputs, maps, init, output_map, loops, body):
        """`loops` like "ppr"; `body(args)` returns (lines, yielded scalar)."""
        dims = ", ".join(f"d{i}" for i in range(len(loops)))
        spelled = [f"affine_map<({dims}) -> ({m})>" for m in [*maps, output_map]]
        kinds = ", ".join({"p": '"parallel"', "r": '"reduction"'}[c] for c in loops)
        scalars = [f"%s{i}" for i in range(len(inputs) + 1)]
        lines, result = body(*scalars)
        block = ", ".join(f"{s}: {v[2]}" for s, v in zip(scalars, [*inputs, init]))
        ins = f"ins({', '.join(v[0] for v in inputs)} : {', '.join(tensor(*v[1:]) for v in inputs)}) " if inputs else ""
        t = tensor(*init[1:])
        text = (f"linalg.generic {{indexing_maps = [{', '.join(spelled)}], iterator_types = [{kinds}]}} {ins}"
                f"outs({init[0]} : {t}) {{\n^bb0({block}):\n" + "\n".join(lines) +
                f"\nlinalg.yield {result} : {init[2]}\n}} -> {t}")
        return self.add(text, init[1], init[2])

    def pointwise(self, inputs, maps, shape, body, element="f32"):
        identity = ", ".join(f"d{i}" for i in range(len(shape)))
        return self.generic(inputs, [m if m is not None else identity for m in maps],
                            self.empty(shape, element), identity, "p" * len(shape), body)

    def reduce(self, inputs, maps, shape, output_map, loops, value, combine="arith.addf", init=0.0, element="f32"):
        """Folds `value(args)` into a fill of `init`."""
        def body(*scalars):
            lines, v = value(*scalars[:-1])
            return [*lines, f"%acc = {combine} {scalars[-1]}, {v} : {element}"], "%acc"
        return self.generic(inputs, maps, self.fill(shape, init, element), output_map, loops, body)


def tensor(shape, element="f32"):
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


WHOLE_SOFTMAX = True


def unary(op):
    return lambda x, o: ([f"%r = {op} {x} : f32"], "%r")


def binary(op):
    return lambda x, y, o: ([f"%r = {op} {x}, {y} : f32"], "%r")


def same(x):
    return [], x


def product(x, y):
    return [f"%p = arith.mulf {x}, {y} : f32"], "%p"


def relu_body(x, o):
    return ["%z = arith.constant 0.0 : f32", f"%c = arith.cmpf ogt, {x}, %z : f32",
            f"%r = arith.select %c, {x}, %z : f32"], "%r"


def elementwise(body, arity, dims=2):
    def build(r, *d):
        return [r.pointwise([r.argument(d) for _ in range(arity)], [None] * arity, d, body)]
    return build, dims


def bias_add(r, a, b, c):
    return [r.pointwise([r.argument((a, b, c)), r.argument((c,))], [None, "d2"], (a, b, c), binary("arith.addf"))]


def add_scalar_const(r, a, b):
    body = lambda x, o: (["%c = arith.constant 1.5 : f32", f"%r = arith.addf {x}, %c : f32"], "%r")
    return [r.pointwise([r.argument((a, b))], [None], (a, b), body)]


def relu_grad(r, a, b):
    body = lambda g, x, o: (["%z = arith.constant 0.0 : f32", f"%c = arith.cmpf ogt, {x}, %z : f32",
                             f"%r = arith.select %c, {g}, %z : f32"], "%r")
    return [r.pointwise([r.argument((a, b)), r.argument((a, b))], [None, None], (a, b), body)]


def where(r, a, b):
    body = lambda c, x, y, o: (["%z = arith.constant 0 : i32", f"%c = arith.cmpi ne, {c}, %z : i32",
                                f"%r = arith.select %c, {x}, {y} : f32"], "%r")
    inputs = [r.argument((a, b), "i32"), r.argument((a, b)), r.argument((a, b))]
    return [r.pointwise(inputs, [None] * 3, (a, b), body)]


def matmul(r, m, k, n):
    x, w = r.argument((m, k)), r.argument((k, n))
    f = r.fill((m, n), 0.0)
    return [r.add(f"linalg.matmul ins({x[0]}, {w[0]} : {tensor(x[1])}, {tensor(w[1])}) "
                  f"outs({f[0]} : {tensor((m, n))}) -> {tensor((m, n))}", (m, n))]


def gemm_bias(r, m, k, n):
    y = matmul(r, m, k, n)[0]
    return [r.pointwise([y, r.argument((n,))], [None, "d1"], (m, n), binary("arith.addf"))]


def batch_matmul(r, b, m, k, n):
    x, w = r.argument((b, m, k)), r.argument((b, k, n))
    return [r.reduce([x, w], ["d0, d1, d3", "d0, d3, d2"], (b, m, n), "d0, d1, d2", "pppr", product)]


def matmul_grad_w(r, m, k, n):
    x, g = r.argument((m, k)), r.argument((m, n))
    return [r.reduce([x, g], ["d2, d0", "d2, d1"], (k, n), "d0, d1", "ppr", product)]


def softmax(r, x):
    """linalg.softmax; as its four ops where it must be lowered by upstream."""
    if not WHOLE_SOFTMAX:
        outer = ", ".join(f"d{i}" for i in range(len(x[1]) - 1))
        every, loops = f"{outer}, d{len(x[1]) - 1}", "p" * (len(x[1]) - 1) + "r"
        m = r.reduce([x], [every], x[1][:-1], outer, loops, same, "arith.maximumf", "0xFF800000")
        e = r.pointwise([x, m], [None, outer], x[1], lambda a, b, o: ([f"%d = arith.subf {a}, {b} : f32", "%r = math.exp %d : f32"], "%r"))
        s = r.reduce([e], [every], x[1][:-1], outer, loops, same)
        return r.pointwise([e, s], [None, outer], x[1], binary("arith.divf"))
    e = r.empty(x[1])
    t = tensor(x[1])
    return r.add(f"linalg.softmax dimension({len(x[1]) - 1}) ins({x[0]} : {t}) outs({e[0]} : {t}) -> {t}", x[1])


def attention_bhsd(r, b, h, s, d, t):
    q, k, v = r.argument((b, h, s, d)), r.argument((b, h, t, d)), r.argument((b, h, t, d))
    scores = r.reduce([q, k], ["d0, d1, d2, d4", "d0, d1, d3, d4"], (b, h, s, t), "d0, d1, d2, d3", "ppppr", product)
    return [r.reduce([softmax(r, scores), v], ["d0, d1, d2, d4", "d0, d1, d4, d3"], (b, h, s, d),
                     "d0, d1, d2, d3", "ppppr", product)]


def conv2d_3x3(r, n, c, h, w, o):
    x, k, f = r.argument((n, c, h, w)), r.argument((o, c, 3, 3)), r.fill((n, o, h - 2, w - 2), 0.0)
    t = tensor(f[1])
    return [r.add(f"linalg.conv_2d_nchw_fchw ins({x[0]}, {k[0]} : {tensor(x[1])}, {tensor(k[1])}) outs({f[0]} : {t}) -> {t}", f[1])]


def maxpool2(r, n, c, h, w):
    x, k = r.argument((n, c, h, w)), r.empty((2, 2))
    f = r.fill((n, c, h // 2, w // 2), "0xFF800000")
    t = tensor(f[1])
    return [r.add(f"linalg.pooling_nchw_max {{strides = dense<2> : tensor<2xi64>}} ins({x[0]}, {k[0]} : {tensor(x[1])}, "
                  f"tensor<2x2xf32>) outs({f[0]} : {t}) -> {t}", f[1])]


def scaled(r, x, factor):
    return r.pointwise([x], [None], x[1], lambda a, o: ([f"%c = arith.constant {factor!r} : f32",
                                                         f"%r = arith.mulf {a}, %c : f32"], "%r"))


def global_avgpool(r, n, c, h, w):
    x = r.argument((n, c, h, w))
    return [scaled(r, r.reduce([x], ["d0, d1, d2, d3"], (n, c), "d0, d1", "pprr", same), 1 / max(h * w, 1))]


def centred(r, x, mean, maps, shape):
    return r.pointwise([x, mean], maps, shape, binary("arith.subf"))


def square(x):
    return [f"%p = arith.mulf {x}, {x} : f32"], "%p"


def rsqrt_body(v, o):
    return ["%e = arith.constant 1.0e-3 : f32", f"%p = arith.addf {v}, %e : f32", "%r = math.rsqrt %p : f32"], "%r"


def batchnorm_train(r, n, c, h, w):
    x, count = r.argument((n, c, h, w)), 1 / max(n * h * w, 1)
    mean = scaled(r, r.reduce([x], ["d1, d0, d2, d3"], (c,), "d0", "prrr", same), count)
    d = centred(r, x, mean, [None, "d1"], x[1])
    variance = scaled(r, r.reduce([d], ["d1, d0, d2, d3"], (c,), "d0", "prrr", square), count)
    scale = r.pointwise([variance], [None], (c,), rsqrt_body)
    return [r.pointwise([d, scale], [None, "d1"], x[1], binary("arith.mulf"))]


def layernorm(r, a, b, c):
    x, g, beta = r.argument((a, b, c)), r.argument((c,)), r.argument((c,))
    mean = scaled(r, r.reduce([x], ["d0, d1, d2"], (a, b), "d0, d1", "ppr", same), 1 / max(c, 1))
    d = centred(r, x, mean, [None, "d0, d1"], x[1])
    variance = scaled(r, r.reduce([d], ["d0, d1, d2"], (a, b), "d0, d1", "ppr", square), 1 / max(c, 1))
    scale = r.pointwise([variance], [None], (a, b), rsqrt_body)
    y = r.pointwise([d, scale], [None, "d0, d1"], x[1], binary("arith.mulf"))
    y = r.pointwise([y, g], [None, "d2"], x[1], binary("arith.mulf"))
    return [r.pointwise([y, beta], [None, "d2"], x[1], binary("arith.addf"))]


def softmax_last(r, a, b):
    return [softmax(r, r.argument((a, b)))]


def softmax_grad(r, a, b):
    g, y = r.argument((a, b)), r.argument((a, b))
    dot = r.reduce([g, y], ["d0, d1", "d0, d1"], (a,), "d0", "pr", product)
    d = r.pointwise([g, dot], [None, "d0"], (a, b), binary("arith.subf"))
    return [r.pointwise([d, y], [None, None], (a, b), binary("arith.mulf"))]


def reduce_sum_0(r, a, b, c):
    return [r.reduce([r.argument((a, b, c))], ["d2, d0, d1"], (b, c), "d0, d1", "ppr", same)]


def reduce_mean_last_keep(r, a, b):
    s = scaled(r, r.reduce([r.argument((a, b))], ["d0, d1"], (a,), "d0", "pr", same), 1 / max(b, 1))
    return [r.add(f"tensor.expand_shape {s[0]} [[0, 1]] output_shape [{a}, 1] : {tensor((a,))} into {tensor((a, 1))}", (a, 1))]


def reduce_max_0(r, a, b):
    return [r.reduce([r.argument((a, b))], ["d1, d0"], (b,), "d0", "pr", same, "arith.maximumf", "0xFF800000")]


def argmax_last(r, a, b):
    x = r.argument((a, b))
    m, i = r.fill((a,), "0xFF800000"), r.fill((a,), 0, "i64")
    name = r.name()
    two = "affine_map<(d0, d1) -> (d0, d1)>", "affine_map<(d0, d1) -> (d0)>", "affine_map<(d0, d1) -> (d0)>"
    r.lines.append(
        f"{name}:2 = linalg.generic {{indexing_maps = [{', '.join(two)}], iterator_types = [\"parallel\", \"reduction\"]}} "
        f"ins({x[0]} : {tensor((a, b))}) outs({m[0]}, {i[0]} : {tensor((a,))}, {tensor((a,), 'i64')}) {{\n"
        "^bb0(%x: f32, %m: f32, %i: i64):\n%j = linalg.index 1 : index\n%k = arith.index_cast %j : index to i64\n"
        "%c = arith.cmpf ogt, %x, %m : f32\n%s = arith.select %c, %x, %m : f32\n%t = arith.select %c, %k, %i : i64\n"
        f"linalg.yield %s, %t : f32, i64\n}} -> ({tensor((a,))}, {tensor((a,), 'i64')})")
    return [(f"{name}#1", (a,), "i64")]


def transpose_021(r, a, b, c):
    x, e = r.argument((a, b, c)), r.empty((a, c, b))
    return [r.add(f"linalg.transpose ins({x[0]} : {tensor(x[1])}) outs({e[0]} : {tensor(e[1])}) permutation = [0, 2, 1]", e[1])]


def concat_0(r, a, b, c):
    x, y = r.argument((a, b)), r.argument((c, b))
    return [r.add(f"tensor.concat dim(0) {x[0]}, {y[0]} : ({tensor(x[1])}, {tensor(y[1])}) -> {tensor((a + c, b))}", (a + c, b))]


def extract(r, x, begin, count):
    a = x[1][0]
    return r.add(f"tensor.extract_slice {x[0]}[0, {begin}] [{a}, {count}] [1, 1] : {tensor(x[1])} to {tensor((a, count))}", (a, count))


def split_1(r, a, b):
    x = r.argument((a, 2 * b))
    return [extract(r, x, 0, b), extract(r, x, b, b)]


def slice_1_from2(r, a, b):
    return [extract(r, r.argument((a, b + 2)), 2, b)]


def flatten_12(r, a, b, c):
    x = r.argument((a, b, c))
    return [r.add(f"tensor.collapse_shape {x[0]} [[0], [1, 2]] : {tensor(x[1])} into {tensor((a, b * c))}", (a, b * c))]


def unflatten_1_heads(r, a, b, c):
    x = r.argument((a, b * c))
    return [r.add(f"tensor.expand_shape {x[0]} [[0], [1, 2]] output_shape [{a}, {b}, {c}] : {tensor(x[1])} into {tensor((a, b, c))}", (a, b, c))]


def equals_index(loop, value, then="%z0"):
    """Lines that keep `value` where the label `%s`-argument equals a loop index."""
    def body(v, label):
        return [f"%i = linalg.index {loop} : index", "%k = arith.index_cast %i : index to i64",
                f"%c = arith.cmpi eq, {label}, %k : i64", "%z0 = arith.constant 0.0 : f32",
                f"%p = arith.select %c, {v}, %z0 : f32"], "%p"
    return body


def gather_rows_masked(r, v, d, a, b):
    """Rows of a table as a reduction over its rows, so that they may be split."""
    table, ids = r.argument((v, d)), r.argument((a, b), "i64")
    return [r.reduce([table, ids], ["d3, d2", "d0, d1"], (a, b, d), "d0, d1, d2", "pppr", equals_index(3, None))]


def embedding_grad_V12(r, n, d, v):
    g, ids = r.argument((n, d)), r.argument((n,), "i64")
    return [r.reduce([g, ids], ["d2, d1", "d2"], (v, d), "d0, d1", "ppr", equals_index(0, None))]


def xent_sum(r, n, c):
    x, label = r.argument((n, c)), r.argument((n,), "i64")
    m = r.reduce([x], ["d0, d1"], (n,), "d0", "pr", same, "arith.maximumf", "0xFF800000")
    shifted = lambda a, b: ([f"%d = arith.subf {a}, {b} : f32", "%p = math.exp %d : f32"], "%p")
    s = r.reduce([x, m], ["d0, d1", "d0"], (n,), "d0", "pr", shifted)
    lse = r.pointwise([m, s], [None, None], (n,), lambda a, b, o: ([f"%l = math.log {b} : f32", f"%r = arith.addf {a}, %l : f32"], "%r"))
    own = r.reduce([x, label], ["d0, d1", "d0"], (n,), "d0", "pr", equals_index(1, None))
    return [r.reduce([lse, own], ["d0", "d0"], (), "", "r", lambda a, b: ([f"%p = arith.subf {a}, {b} : f32"], "%p"))]


def sgd_update(r, a, b):
    body = lambda w, g, o: (["%lr = arith.constant 0.1 : f32", f"%p = arith.mulf {g}, %lr : f32", f"%r = arith.subf {w}, %p : f32"], "%r")
    return [r.pointwise([r.argument((a, b)), r.argument((a, b))], [None, None], (a, b), body)]


# Not in the table: windows with units, pads, insertions, generic tables.


def avgpool_3(r, n, c, h):
    """Windows of 3 in steps of 3; a last window may be cut off."""
    x, k = r.argument((n, c, 3 * h)), r.empty((3,))
    return [r.generic([x, k], ["d0, d1, d2 * 3 + d3", "d3"], r.fill((n, c, h), 0.0), "d0, d1, d2", "pppr",
                      lambda a, b, o: ([f"%r = arith.addf {o}, {a} : f32"], "%r"))]


def avgpool_3_grad(r, n, h):
    g, k = r.argument((n, h)), r.empty((3,))
    return [r.generic([g, k], ["d0, d1", "d2"], r.fill((n, 3 * h), 0.0), "d0, d1 * 3 + d2", "prr",
                      lambda a, b, o: ([f"%r = arith.addf {o}, {a} : f32"], "%r"))]


def strided(r, a, b):
    """Every second column of an odd number of them: the last unit is incomplete."""
    x = r.argument((a, max(2 * b - 1, 0)))
    return [r.pointwise([x], ["d0, d1 * 2"], (a, b), lambda v, o: ([], v))]


def pad_1(r, a, b):
    x, z = r.argument((a, b)), r.constant(0.0)
    return [r.add(f"tensor.pad {x[0]} low[0, 1] high[0, 2] {{\n^bb0(%i: index, %j: index):\ntensor.yield {z[0]} : f32\n}} : "
                  f"{tensor((a, b))} to {tensor((a, b + 3))}", (a, b + 3))]


def insert(r, a, b):
    x, y = r.argument((a, b)), r.argument((a, b + 2))
    return [r.add(f"tensor.insert_slice {x[0]} into {y[0]}[0, 1] [{a}, {b}] [1, 1] : {tensor(x[1])} into {tensor(y[1])}", y[1])]


def gather_table(r, v, d, n):
    table, ids = r.argument((v, d)), r.argument((n,), "i64")
    body = lambda i, o: ([f"%k = arith.index_cast {i} : i64 to index", "%j = linalg.index 1 : index",
                          f"%q = tensor.extract {table[0]}[%k, %j] : {tensor(table[1])}"], "%q")
    return [r.pointwise([ids], ["d0"], (n, d), body)]


def heads(r, a, h, d):
    """Flatten, scale, unflatten: the unit goes through."""
    x = r.argument((a, h, d))
    y = r.add(f"tensor.collapse_shape {x[0]} [[0], [1, 2]] : {tensor(x[1])} into {tensor((a, h * d))}", (a, h * d))
    y = r.pointwise([y], [None], y[1], unary("math.exp"))
    return [r.add(f"tensor.expand_shape {y[0]} [[0], [1, 2]] output_shape [{a}, {h}, {d}] : {tensor(y[1])} into {tensor(x[1])}", x[1])]


def positions(r, a, b):
    """Values made from indices alone: only results are split."""
    def body(o):
        return ["%i = linalg.index 0 : index", "%j = linalg.index 1 : index", "%c = arith.constant 10 : index",
                "%k = arith.muli %i, %c : index", "%l = arith.addi %k, %j : index",
                "%m = arith.index_cast %l : index to i64", "%r = arith.sitofp %m : i64 to f32"], "%r"
    return [r.generic([], [], r.empty((a, b)), "d0, d1", "pp", body)]


def affine_sum(r, a, b):
    """sum(x + 1): the constant must be added once."""
    return [r.reduce([r.argument((a, b))], ["d0, d1"], (a,), "d0", "pr",
                     lambda x: (["%c = arith.constant 1.0 : f32", f"%p = arith.addf {x}, %c : f32"], "%p"))]


def norm(r, a):
    s = r.reduce([r.argument((a,))], ["d0"], (), "", "r", square)
    return [r.pointwise([s], [""], (), unary("math.sqrt"))]


def clip(r, a, b):
    body = lambda x, o: (["%l = arith.constant -0.5 : f32", "%h = arith.constant 0.5 : f32",
                          f"%m = arith.maximumf {x}, %l : f32", "%r = arith.minimumf %m, %h : f32"], "%r")
    return [r.pointwise([r.argument((a, b))], [None], (a, b), body)]


TABLE = {
    "add": elementwise(binary("arith.addf"), 2), "mul": elementwise(binary("arith.mulf"), 2),
    "div": elementwise(binary("arith.divf"), 2), "bias_add": (bias_add, 3), "add_scalar_const": (add_scalar_const, 2),
    "neg": elementwise(unary("arith.negf"), 1), "relu": elementwise(relu_body, 1), "relu_grad": (relu_grad, 2),
    "exp": elementwise(unary("math.exp"), 1), "where": (where, 2), "matmul": (matmul, 3), "gemm_bias": (gemm_bias, 3),
    "batch_matmul": (batch_matmul, 4), "matmul_grad_w": (matmul_grad_w, 3), "attention_bhsd": (attention_bhsd, 5),
    "conv2d_3x3": (conv2d_3x3, 5), "maxpool2": (maxpool2, 4), "global_avgpool": (global_avgpool, 4),
    "batchnorm_train": (batchnorm_train, 4), "layernorm": (layernorm, 3), "softmax_last": (softmax_last, 2),
    "softmax_grad": (softmax_grad, 2), "reduce_sum_0": (reduce_sum_0, 3),
    "reduce_mean_last_keep": (reduce_mean_last_keep, 2), "reduce_max_0": (reduce_max_0, 2),
    "argmax_last": (argmax_last, 2), "transpose_021": (transpose_021, 3), "concat_0": (concat_0, 3),
    "split_1": (split_1, 2), "slice_1_from2": (slice_1_from2, 2), "flatten_12": (flatten_12, 3),
    "unflatten_1_heads": (unflatten_1_heads, 3), "gather_rows_masked": (gather_rows_masked, 4),
    "embedding_grad_V12": (embedding_grad_V12, 3), "xent_sum": (xent_sum, 2), "sgd_update": (sgd_update, 2),
}
OTHERS = {
    "avgpool_3": (avgpool_3, 3), "avgpool_3_grad": (avgpool_3_grad, 2), "strided": (strided, 2), "pad_1": (pad_1, 2),
    "insert": (insert, 2), "gather_table": (gather_table, 3), "heads": (heads, 3), "positions": (positions, 2),
    "affine_sum": (affine_sum, 2), "norm": (norm, 1), "clip": (clip, 2),
}


def mesh(sizes):
    return '#flow.mesh<"m", [%s]>' % ", ".join(f'"a{i}" = {n}' for i, n in enumerate(sizes))


def dist(value, sizes, sbp):
    return f"!flow.dist<{''.join(f'{n}x' for n in value[1])}{value[2]}, {mesh(sizes)}, [{', '.join(sbp)}]>"


def function(name, build, dims, sizes, inputs=None, outputs=None):
    """A function of one flow.compute; `inputs[i][axis]` is argument i's entry. By
    default everything is B. Returns (text, arguments, results)."""
    r = Region()
    results = build(r, *dims)
    whole = ["B"] * len(sizes)
    ins = [dist(a, sizes, inputs[i] if inputs else whole) for i, a in enumerate(r.arguments)]
    outs = [dist(v, sizes, outputs[i] if outputs else whole) for i, v in enumerate(results)]
    parameters = ", ".join(f"%x{i}: {t}" for i, t in enumerate(ins))
    operands = ", ".join(f"%x{i} : {t}" for i, t in enumerate(ins))
    block = ", ".join(f"{n}: {tensor(s, e)}" for n, s, e in r.arguments)
    many = ", ".join(outs)
    returned = ", ".join(f"%y#{i}" if len(outs) > 1 else "%y" for i in range(len(outs)))
    text = (f"func.func @{name}({parameters}) -> ({many}) {{\n%y{f':{len(outs)}' if len(outs) > 1 else ''} = flow.compute ({operands}) -> ({many}) "
            f"{{\n^bb0({block}):\n" + "\n".join(r.lines) +
            f"\nflow.yield {', '.join(v[0] for v in results)} : {', '.join(tensor(*v[1:]) for v in results)}\n}}\n"
            f"return {returned} : {many}\n}}\n")
    return text, r.arguments, results
