#!/usr/bin/env python3
"""A square f32 matmul on one thread: flow's kernel against torch and the core's peak.

The kernel is compiled as in a program; both run in turn in one process, and the minima count.
The peak is measured by a loop of independent fused multiply-adds. Needs torch.

    benchmarks/matmul.py --size 512 --bin build/release/bin --json benchmarks/results/matmul.json
"""
import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test/lib/Kernels/CPU/Inputs"))

PEAK = r"""
#include <stdint.h>
#ifdef __AVX512F__
typedef float V __attribute__((vector_size(64)));
#else
typedef float V __attribute__((vector_size(32)));
#endif
/* Twelve chains of fused multiply-adds hide their latency. Returns flops. */
double peak(int64_t n, float *out) {
  V a[12], x, y;
  for (int i = 0; i < 12; ++i) for (unsigned j = 0; j < sizeof(V) / 4; ++j) a[i][j] = i;
  for (unsigned j = 0; j < sizeof(V) / 4; ++j) x[j] = 0.999f, y[j] = 1e-6f;
  for (int64_t k = 0; k < n; ++k) {
#pragma clang loop unroll(full)
    for (int i = 0; i < 12; ++i) a[i] = a[i] * x + y;
    __asm__ volatile("" ::: "memory");
  }
  V s = a[0];
  for (int i = 1; i < 12; ++i) s += a[i];
  *out = s[0];
  return 2.0 * n * 12 * (sizeof(V) / 4);
}
"""


def peak_gflops(folder):
    source = pathlib.Path(folder) / "peak.c"
    source.write_text(PEAK)
    library = source.with_suffix(".so")
    subprocess.run(["clang-22", "-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC", "-o", library, source],
                   check=True)
    function = ctypes.CDLL(str(library)).peak
    function.restype = ctypes.c_double
    out, best = ctypes.c_float(), 0
    for _ in range(20):
        start = time.perf_counter()
        flops = function(ctypes.c_int64(2_000_000), ctypes.byref(out))
        best = max(best, flops / (time.perf_counter() - start) / 1e9)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    os.environ["PATH"] = arguments.bin + ":" + os.environ["PATH"]
    import torch
    from kernelrun import Module

    torch.set_num_threads(1)
    n = arguments.size
    text = f"""
    func.func @f(%a: tensor<{n}x{n}xf32>, %b: tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32> {{
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<{n}x{n}xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
      %c = linalg.matmul ins(%a, %b : tensor<{n}x{n}xf32>, tensor<{n}x{n}xf32>) outs(%z : tensor<{n}x{n}xf32>)
           -> tensor<{n}x{n}xf32>
      return %c : tensor<{n}x{n}xf32>
    }}"""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    kernel = Module(text).kernels["f"]
    call, outputs = kernel.prepare([a, b])
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    ours, peer = [], []
    for _ in range(arguments.rounds):
        for times, run in ((ours, call), (peer, lambda: torch.mm(ta, tb))):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
    np.testing.assert_allclose(outputs[0], a @ b, rtol=1e-4, atol=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        peak = peak_gflops(folder)
    gflops = [2 * n**3 / min(times) / 1e9 for times in (ours, peer)]
    print(f"{n}^3 f32 matmul, one thread: flow {gflops[0]:.0f} GF/s ({100 * gflops[0] / peak:.0f} % of the core's "
          f"{peak:.0f}), torch {gflops[1]:.0f} GF/s")
    if arguments.json:
        pathlib.Path(arguments.json).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(arguments.json).write_text(json.dumps([{
            "what": f"f32 matmul {n}^3, one thread ({100 * gflops[0] / peak:.0f} % of the core's peak)",
            "ours": f"{gflops[0]:.0f}", "peer": f"{gflops[1]:.0f}", "peer_name": "torch " + torch.__version__.split("+")[0],
            "unit": "GF/s", "ratio": f"{min(ours) / min(peer):.2f}", "command": f"benchmarks/matmul.py --size {n}"}]) + "\n")


if __name__ == "__main__":
    main()
