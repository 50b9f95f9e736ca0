"""Compiles MLIR text with upstream's lowering and calls its functions on NumPy arrays.

For tests of passes whose result is ordinary tensor code: nothing of flow is
involved after `passes`. Functions take and return ranked tensors only.
"""
import ctypes
import os
import subprocess
import tempfile

import numpy as np

LLVM_BIN = os.environ.get("LLVM_BIN", "/usr/lib/llvm-22/bin")
LOWER = [
    "--canonicalize",
    "--cse",
    "--convert-elementwise-to-linalg",
    "--one-shot-bufferize=bufferize-function-boundaries=1"
    " function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops=1",
    "--convert-linalg-to-loops",
    "--llvm-request-c-wrappers",
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-scf-to-cf",
    "--math-expand-ops=ops=rsqrt",
    "--convert-math-to-libm",
    "--convert-to-llvm",
    "--reconcile-unrealized-casts",
]


def _run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])}: {done.stderr[:4000]}")
    return done.stdout


def _descriptor(rank):
    fields = [("base", ctypes.c_void_p), ("data", ctypes.c_void_p), ("offset", ctypes.c_int64)]
    if rank:
        fields += [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]
    return type(f"Memref{rank}", (ctypes.Structure,), {"_fields_": fields})


def _to_descriptor(array):
    d = _descriptor(array.ndim)()
    d.base = d.data = array.ctypes.data
    for i in range(array.ndim):
        d.sizes[i] = array.shape[i]
        d.strides[i] = array.strides[i] // array.itemsize
    return d


class Module:
    """`outputs[name]` lists (dtype, rank) of each result of function `name`."""

    def __init__(self, text, passes, outputs):
        self.outputs = outputs
        lowered = _run(["flow-opt", *passes, *LOWER], text)
        ir = _run([f"{LLVM_BIN}/mlir-translate", "--mlir-to-llvmir"], lowered)
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "module.so")
            _run([f"{LLVM_BIN}/clang", "-x", "ir", "-", "-O0", "-shared", "-fPIC", "-Wno-override-module",
                  "-o", library, f"-L{LLVM_BIN}/../lib", "-lmlir_c_runner_utils", "-lm",
                  f"-Wl,-rpath,{LLVM_BIN}/../lib", "-Wl,-Bsymbolic"], ir)  # libc has a function step
            self.library = ctypes.CDLL(library)

    def call(self, name, arrays):
        # Copies: bufferization may write into arguments.
        arrays = [np.array(a, order="C") for a in arrays]
        outputs = self.outputs[name]
        result = type("Results", (ctypes.Structure,),
                      {"_fields_": [(f"r{i}", _descriptor(rank)) for i, (_, rank) in enumerate(outputs)]})()
        inputs = [_to_descriptor(a) for a in arrays]
        self.library[f"_mlir_ciface_{name}"](ctypes.byref(result), *[ctypes.byref(d) for d in inputs])
        return [self._from_descriptor(getattr(result, f"r{i}"), np.dtype(dtype), rank)
                for i, (dtype, rank) in enumerate(outputs)]

    @staticmethod
    def _from_descriptor(d, dtype, rank):
        shape = tuple(d.sizes[i] for i in range(rank))
        if 0 in shape:
            return np.zeros(shape, dtype)
        strides = [d.strides[i] * dtype.itemsize for i in range(rank)]
        reach = sum((n - 1) * s for n, s in zip(shape, strides)) + dtype.itemsize
        memory = (ctypes.c_char * reach).from_address(d.data + d.offset * dtype.itemsize)
        return np.ndarray(shape, dtype, memory, strides=strides).copy()
