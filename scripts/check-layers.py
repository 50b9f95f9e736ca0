#!/usr/bin/env python3
"""Fails when a file includes a header of a room that it may not depend on.

The shared build with --no-undefined checks the calls; this checks the includes.
"""
import pathlib
import re
import sys

FLOW = ["dialects/Flow/IR", "dialects/Flow/Rules", "dialects/Flow/Transforms"]
# Room -> rooms it may include. A room may always include itself.
ALLOWED = {
    "dialects/Flow/IR": [],
    "dialects/Flow/Rules": ["dialects/Flow/IR"],
    "dialects/Flow/Transforms": ["dialects/Flow/IR", "dialects/Flow/Rules", "lib/Planning"],
    "dialects/CCL/IR": [],
    "dialects/CCL/Transforms": ["dialects/CCL/IR"],
    "dialects/Actor/IR": [],
    "dialects/Actor/Transforms": ["dialects/Actor/IR"],
    "lib/Translation/ONNX": ["dialects/Flow/IR"],
    "lib/Legalize": ["dialects/Flow/IR"],
    "lib/Training": ["dialects/Flow/IR"],
    "lib/Planning": ["dialects/Flow/IR", "dialects/Flow/Rules"],
    "lib/Scheduling": ["dialects/Actor/IR"],
    "lib/Certificate": ["dialects/Flow/IR", "dialects/CCL/IR"],
    "lib/Conversion/FlowToCCL": FLOW + ["dialects/CCL/IR"],
    "lib/Conversion/CCLToActor": ["dialects/Flow/IR", "dialects/CCL/IR", "dialects/Actor/IR"],
    "lib/Conversion/ActorToLLVM": ["dialects/Flow/IR", "dialects/Actor/IR", "include/flow"],
    "lib/Kernels": ["dialects/Flow/IR", "dialects/CCL/IR"],
    "lib/Target": ["dialects", "lib/Kernels", "include/flow"],
    "lib/Pipelines": ["dialects", "lib", "include/flow"],
    "lib/Driver": ["dialects", "lib", "include/flow"],
    "runtime": ["include/flow/Runtime"],
    "tools": ["dialects", "lib", "include/flow"],
    "python": ["lib/Driver", "include/flow"],
}
NOT_ABOVE = {  # rooms below that must not look up
    "lib/Target": ["lib/Pipelines", "lib/Driver"],
    "lib/Pipelines": ["lib/Driver"],
}
ROOMS = sorted(ALLOWED, key=len, reverse=True)
INCLUDE = re.compile(r'^\s*#\s*include\s+"((?:dialects|lib|include|runtime|python)/[^"]+)"')


def within(path, room):
    return path == room or path.startswith(room + "/")


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    bad = 0
    for top in ("dialects", "lib", "runtime", "tools", "python"):
        for file in sorted((root / top).rglob("*.[ch]*")):
            path = file.relative_to(root).as_posix()
            here = next((r for r in ROOMS if within(path, r)), None)
            if here is None:
                print(f"{path}: in no room of scripts/check-layers.py")
                bad += 1
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if not match or within(match[1], here):
                    continue
                allowed = any(within(match[1], r) for r in ALLOWED[here])
                above = any(within(match[1], r) for r in NOT_ABOVE.get(here, []))
                if not allowed or above:
                    print(f"{path}:{number}: {here} may not include {match[1]}")
                    bad += 1
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
