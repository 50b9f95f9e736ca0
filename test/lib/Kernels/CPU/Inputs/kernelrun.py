"""Compiles the functions of an MLIR text to a shared object through flow-opt and
calls them on numpy arrays: every test of numbers in this folder uses it."""
import ctypes
import os
import re
import shutil
import subprocess
import tempfile

import numpy as np

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i1": np.bool_, "i8": np.int8,
          "i16": np.int16, "i32": np.int32, "i64": np.int64, "bf16": np.uint16}


def tool(name):
    found = shutil.which(name)
    if found:
        return found
    return os.path.join(subprocess.check_output(["llvm-config-22", "--bindir"], text=True).strip(), name)


def cpu_flags():
    """Vector facts of this machine: pass options and clang flags."""
    if "FLOW_TEST_VECTOR" in os.environ:  # BITSxREGISTERS; LLVM splits what the machine lacks
        bits, registers = os.environ["FLOW_TEST_VECTOR"].split("x")
        return {"vector-bits": int(bits), "registers": int(registers)}
    flags = open("/proc/cpuinfo").read()
    if " avx512f" in flags and " avx512vl" in flags:
        return {"vector-bits": 512, "registers": 32}
    if " avx2" in flags and " fma" in flags:
        return {"vector-bits": 256, "registers": 16}
    return {"vector-bits": 128, "registers": 16}


def aligned(shape, dtype, fill=None):
    count = int(np.prod(shape, dtype=np.int64))
    item = np.dtype(dtype).itemsize
    raw = np.zeros(count * item + 64, np.uint8)
    at = -raw.ctypes.data % 64
    out = raw[at:at + count * item].view(dtype).reshape(shape)
    if fill is not None:
        out[...] = fill
    return out


class Kernel:
    def __init__(self, library, name, inputs, outputs, scratch):
        self.function = getattr(library, name)
        self.inputs, self.outputs, self.scratch_bytes = inputs, outputs, scratch
        self.scratch = np.zeros(scratch + 64, np.uint8)

    def prepare(self, arrays, coords=(), inplace=None):
        """Buffers of one call; returns (call, outputs). inplace: {output: input}."""
        ins = []
        for a, (shape, dtype) in zip(arrays, self.inputs, strict=True):
            x = aligned(shape, DTYPES[dtype])
            x[...] = a
            ins.append(x)
        outs = []
        for i, (shape, dtype) in enumerate(self.outputs):
            if inplace and i in inplace:
                outs.append(ins[inplace[i]])
                continue
            x = aligned(shape, DTYPES[dtype])
            x.reshape(-1).view(np.uint8)[...] = 0x77 if dtype != "i1" else 1
            outs.append(x)
        at = self.scratch.ctypes.data + (-self.scratch.ctypes.data % 64)
        pointers = [x.ctypes.data for x in ins + outs] + [at]
        buffers = (ctypes.c_void_p * len(pointers))(*pointers)
        where = (ctypes.c_int64 * max(1, len(coords)))(*coords)

        def call():
            self.function(buffers, where)
        call.keep = (ins, outs, buffers, where)
        return call, outs

    def __call__(self, *arrays, coords=(), inplace=None):
        self.scratch[...] = 0x77
        call, outs = self.prepare(arrays, coords, inplace)
        call()
        return outs


def parse_type(text):
    m = re.fullmatch(r"tensor<((?:\d+x)*)(\w+)>", text.strip())
    return tuple(int(d) for d in m.group(1).split("x") if d), m.group(2)


POOL = r"""
void flow_rt_parallel(void (*body)(void *, long), void *context, long chunks) {
  %s
}
"""
FORWARD = "for (long i = 0; i < chunks; ++i) body(context, i);"
BACKWARD = "for (long i = chunks - 1; i >= 0; --i) body(context, i);"


class Module:
    """`text`: functions on tensors. With form=True they are cut into kernels first
    (--flow-form-kernels{all exported}); else each one is a kernel."""

    def __init__(self, text, form=False, options="", pool=FORWARD, keep=None, passes=None):
        self.folder = keep or tempfile.mkdtemp(prefix="flow-kernels-")
        base = os.path.join(self.folder, "k")
        if not form:
            text = re.sub(r"(func\.func @\w+\([^{]*?)(\{\s*\n)", r"\1attributes {flow.kernel} \2", text)
        with open(base + ".mlir", "w") as f:
            f.write(text)
        facts = cpu_flags()
        opts = " ".join(f"{k}={v}" for k, v in facts.items()) + " " + options
        first = "flow-form-kernels{all exported}," if form else ""
        self.form = self.run_opt(base, f"builtin.module({first}canonicalize)", ".form")
        pipeline = f"builtin.module({first}" + (
            passes or f"flow-bufferize-kernels{{drop-callers}},flow-cpu-kernels{{{opts}}}") + ")"
        self.llvm = self.run_opt(base, pipeline, ".llvm")
        with open(base + ".pool.c", "w") as f:
            f.write(POOL % pool)
        march = "-march=native -mprefer-vector-width=%d" % facts["vector-bits"]
        subprocess.check_call(f"{tool('mlir-translate')} --mlir-to-llvmir {base}.llvm.mlir -o {base}.ll", shell=True)
        subprocess.check_call(
            f"{tool('clang')} -O3 {march} -Wno-override-module -fPIC -shared {base}.ll {base}.pool.c -o {base}.so -lm "
            "-Wl,--no-undefined", shell=True)
        self.library = ctypes.CDLL(base + ".so")
        self.kernels = {}
        for m in re.finditer(r"func\.func (?:private )?@(\w+)\((.*?)\)(?: -> (.*?))? attributes \{flow\.kernel\}",
                             self.form):
            name, args, results = m.groups()
            inputs = [parse_type(t) for t in re.findall(r"tensor<[^>]*>", args)]
            outputs = [parse_type(t) for t in re.findall(r"tensor<[^>]*>", results or "")]
            s = re.search(r"llvm\.func @%s\(.*flow\.scratch_bytes = (\d+)" % name, self.llvm)
            self.kernels[name] = Kernel(self.library, name, inputs, outputs, int(s.group(1)) if s else 0)

    def run_opt(self, base, pipeline, suffix):
        r = subprocess.run([tool("flow-opt"), base + ".mlir", "--pass-pipeline=" + pipeline, "-o", base + suffix + ".mlir"],
                           capture_output=True, text=True, timeout=600)
        if r.returncode:
            raise RuntimeError(f"flow-opt failed on {base}.mlir:\n{r.stderr[:4000]}")
        return open(base + suffix + ".mlir").read()

    def __getitem__(self, name):
        return self.kernels[name]

    def run_function(self, name, arrays):
        """What is left of a function after form-kernels: calls and a return."""
        text = self.form[re.search(r"func\.func @%s\(" % name, self.form).start():]
        head, _, body = text[:text.index("\n  }")].partition("{\n")
        values = {f"%arg{i}": a for i, a in enumerate(arrays)}
        for line in body.splitlines():
            line = line.strip()
            if m := re.match(r"(%\w+)(?::(\d+))? = (?:func\.)?call @(\w+)\((.*?)\)", line):
                outs = self.kernels[m[3]](*[values[v.strip()] for v in m[4].split(",") if v.strip()])
                if m[2]:
                    values.update({f"{m[1]}#{i}": o for i, o in enumerate(outs)})
                else:
                    values[m[1]] = outs[0]
            elif m := re.match(r"return (.*?) :", line):
                return [values[v.strip()] for v in m[1].split(",")]
            elif line != "return" and not re.match(r"%\w+ = (arith\.constant|tensor\.empty)", line):
                raise RuntimeError(f"{name}: not cut: {line}")
        return []


def tensor(shape, dtype="f32"):
    return "tensor<" + "".join(f"{d}x" for d in shape) + dtype + ">"
