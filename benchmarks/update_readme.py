#!/usr/bin/env python3
"""Writes the figures of benchmarks/results/*.json into the README's table.

Each benchmark writes one file with --json: {"what", "ours", "peer", "unit", "ratio", "command"}.
"""
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- figures: benchmarks/update_readme.py -->", "<!-- end of figures -->"


def main():
    rows = ["| what | flow | peer | ratio of minima | measured by |", "|---|---|---|---|---|"]
    for path in sorted((ROOT / "benchmarks/results").glob("*.json")):
        for f in json.loads(path.read_text()):
            rows.append(f"| {f['what']} | {f['ours']} {f['unit']} | {f['peer']} {f['unit']} ({f['peer_name']}) "
                        f"| {f['ratio']} | `{f['command']}` |")
    readme = ROOT / "README.md"
    text = readme.read_text()
    head, rest = text.split(BEGIN)
    readme.write_text(head + BEGIN + "\n" + "\n".join(rows) + "\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
