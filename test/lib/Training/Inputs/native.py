"""Compiles functions on tensors with upstream's passes only, and calls them by ctypes."""
import ctypes
import re
import subprocess

import numpy as np

from linalg_text import numpy_type

LOWER = """
  builtin.module(
    transform-interpreter,canonicalize,cse,
    one-shot-bufferize{bufferize-function-boundaries=1
      function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops=1},
    drop-equivalent-buffer-results,
    buffer-results-to-out-params{modify-public-functions=1},
    canonicalize,convert-linalg-to-loops,expand-strided-metadata,lower-affine,
    convert-scf-to-cf,convert-math-to-llvm,convert-math-to-libm,convert-vector-to-llvm,
    convert-arith-to-llvm,convert-index-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,
    convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts)
"""
# linalg.softmax and tensor.concat have no lowering of their own.
DECOMPOSE = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %s = transform.structured.match ops{["linalg.softmax"]} in %m
      : (!transform.any_op) -> !transform.any_op
    %d = transform.structured.decompose_interface %s : (!transform.any_op) -> !transform.any_op
    %f = transform.structured.match ops{["func.func"]} in %m
      : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %f {
      transform.apply_patterns.tensor.decompose_concat
    } : !transform.any_op
    transform.yield
  }
}
"""


def run(command, **options):
    r = subprocess.run(command, capture_output=True, text=True, **options)
    if r.returncode:
        lines = [l for l in r.stderr.splitlines() if "error" in l] or r.stderr.splitlines()
        raise RuntimeError("\n".join([f"{command[0]} failed", *lines[:20]]))
    return r.stdout


def parse(type_):
    *shape, dtype = re.match(r"tensor<(.*)>", type_).group(1).split("x")
    return tuple(map(int, shape)), numpy_type(dtype)


HEADER = r"func.func @(\w+)\((.*)\) -> (?:\((.*)\)|(tensor<[^>]*>)) {\n"


def plain_header(m):
    """Callable from C, and arguments that nothing overwrites."""
    args = ", ".join(f"{name}: {type_} {{bufferization.writable = false}}"
                     for name, type_ in re.findall(r"(%\w+): (tensor<[^>]*>)", m[2]))
    results = ", ".join(re.findall(r"tensor<[^>]*>", m[3] or m[4]))
    return (f"func.func @{m[1]}({args}) -> ({results}) attributes {{llvm.emit_c_interface}} {{\n")


def signature(text, name):
    m = re.search(HEADER.replace(r"(\w+)", f"({name})", 1), text)
    types = lambda s: [parse(t) for t in re.findall(r"tensor<[^>]*>", s)]
    return types(m[2]), types(m[3] or m[4])


def memref(array):
    n = array.ndim
    fields = [("p", ctypes.c_void_p), ("q", ctypes.c_void_p), ("o", ctypes.c_int64)]
    if n:
        fields += [("s", ctypes.c_int64 * n), ("t", ctypes.c_int64 * n)]
    kind = type(f"Memref{n}", (ctypes.Structure,), {"_fields_": fields})
    d = kind(array.ctypes.data, array.ctypes.data, 0)
    if n:
        d.s[:] = array.shape
        d.t[:] = [s // array.itemsize for s in array.strides]
    return d


class Library:
    """All functions of a module."""

    def __init__(self, text, path):
        self.signatures = {}
        for name in re.findall(r"func.func @(\w+)\(", text):
            self.signatures[name] = signature(text, name)
        text = re.sub(HEADER, plain_header, text)
        # mlir-translate does not know the attribute
        text = re.sub(r"flow.phase = #flow.phase<\w+>,? ?", "", text)
        text = re.sub(r"^module \{", "module attributes {transform.with_named_sequence} {", text,
                      flags=re.M)
        end = text.rindex("}")
        sequence = DECOMPOSE.strip().split("\n", 1)[1].rsplit("}", 1)[0]
        text = text[:end] + sequence + "}\n"
        pipeline = "".join(LOWER.split("\n")).replace("  ", " ").strip()
        llvm = run(["flow-opt", "--pass-pipeline=" + pipeline], input=text)
        llvm = re.sub(r"  transform.named_sequence .*?\n  }\n", "", llvm, flags=re.S)
        llvm = llvm.replace(" attributes {transform.with_named_sequence}", "")
        ir = run(["mlir-translate", "--mlir-to-llvmir"], input=llvm)
        with open(path + ".ll", "w") as f:
            f.write(ir)
        # -Bsymbolic: libc has a function "step" of its own
        run(["clang", "-O1", "-w", "-shared", "-fPIC", "-Wl,-Bsymbolic", path + ".ll", "-o", path + ".so", "-lm",
             "-lmlir_c_runner_utils"] + runner_flags())
        self.library = ctypes.CDLL(path + ".so")

    def call(self, name, *args):
        ins, outs = self.signatures[name]
        args = [np.array(a, dtype, order="C") for a, (_, dtype) in zip(args, ins, strict=True)]
        assert [a.shape for a in args] == [s for s, _ in ins], (name, [a.shape for a in args], ins)
        results = [np.zeros(shape, dtype) for shape, dtype in outs]
        descriptors = [memref(a) for a in args + results]
        function = getattr(self.library, "_mlir_ciface_" + name)
        function(*[ctypes.byref(d) for d in descriptors])
        return results


def runner_flags():
    lib = run(["llvm-config", "--libdir"]).strip()
    return ["-L" + lib, "-Wl,-rpath," + lib]


def differentiate(text, wrt, options=()):
    """`wrt`: function name to argument numbers. Gradients by flow, nothing else."""
    passes = [f"flow-differentiate{{function={name} wrt={','.join(f'a{i}' for i in numbers)}}}"
              for name, numbers in wrt.items()]
    pipeline = f"builtin.module({','.join([*passes, 'canonicalize', 'cse', *options])})"
    return run(["flow-opt", "--pass-pipeline=" + pipeline], input=text)
