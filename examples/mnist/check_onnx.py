#!/usr/bin/env python3
"""Runs an ONNX classifier in ONNX Runtime over a data file and prints its accuracy."""
import argparse
import sys

import numpy as np
import onnxruntime


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="ONNX file with one input and class scores as first output")
    parser.add_argument("data", help="npz with the input under its name and the classes under `label`")
    parser.add_argument("--at-least", type=float, default=0.0, help="exit 1 below this accuracy")
    arguments = parser.parse_args()
    session = onnxruntime.InferenceSession(arguments.model, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    data = np.load(arguments.data)
    scores = session.run(None, {name: data[name]})[0]
    accuracy = float((scores.argmax(-1) == data["label"]).mean())
    print(f"ONNX Runtime: accuracy {accuracy:.4f} on {len(data['label'])} samples")
    return 0 if accuracy >= arguments.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
