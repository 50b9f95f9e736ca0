#!/usr/bin/env python3
"""Compares what a program did with torch's golden values.

losses GOLDEN RTOL METRICS.csv..     the first losses of each run
gradients GOLDEN start|epoch RTOL OUT.npz    grad_NAME of every parameter, by norm and projections
batch DATA.npz N OUT.npz             the first N samples, for the gradients
"""
import csv
import sys

import numpy as np

from golden_projection import project


def main():
    command, *args = sys.argv[1:]
    if command == "batch":
        with np.load(args[0]) as data:
            np.savez(args[2], **{key: data[key][: int(args[1])] for key in data})
    elif command == "losses":
        expected = np.load(args[0])["losses"]
        for path in args[2:]:
            with open(path) as file:
                got = np.array([float(row["loss"]) for row in csv.DictReader(file)])
            assert len(got) == len(expected), f"{path}: {len(got)} losses, expected {len(expected)}"
            error = np.abs(got / expected - 1).max()
            assert error <= float(args[1]), f"{path}: losses differ by {error:.2e}"
            print(f"{path.rsplit('/', 2)[-2]}: losses within {args[1]}")
    elif command == "gradients":
        golden, got = np.load(args[0]), np.load(args[3])
        prefix, tolerance = args[1], float(args[2])
        for i, name in enumerate(golden["names"]):
            norm, projections = project(str(name), got["grad_" + str(name)])
            expected = golden[prefix + ".norms"][i]
            # 8 random directions see the difference of two gradients from 8 sides.
            far = max(abs(norm - expected), np.abs(projections - golden[prefix + ".projections"][i]).max())
            assert far <= tolerance * expected, f"{name}: differs by {far / expected:.2e} of its norm"
            if f"{prefix}.{name}" in golden:
                whole = golden[f"{prefix}.{name}"]
                error = np.linalg.norm(got["grad_" + str(name)] - whole) / np.linalg.norm(whole)
                assert error <= tolerance, f"{name}: differs by {error:.2e} in norm"
        print(f"{len(golden['names'])} gradients within {tolerance}")


main()
