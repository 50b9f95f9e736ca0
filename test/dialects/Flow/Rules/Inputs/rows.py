"""Prints the JSON of --flow-print-signatures as one line per signature."""
import json
import sys

for op in json.load(sys.stdin):
    print(op["op"], op["loc"], " ".join(op["operands"]), "->", " ".join(op["results"]))
    for row in op["signatures"]:
        aligned = " aligned" if row.get("aligned") else ""
        print("  " + " ".join(row["in"]), "->", " ".join(row["out"]) + aligned)
