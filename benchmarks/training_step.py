#!/usr/bin/env python3
"""Time of one training step: flow's executable against torch, one thread each.

The two run in turn, several times each; the figure is the ratio of the minima,
since single timings on a shared machine mean little. Needs torch.

    benchmarks/training_step.py --model lenet --bin build/release/bin
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS = 60


def flow_step_us(program, data, folder):
    """Fastest step, in microseconds, of a run of the trainer."""
    subprocess.run([program, "--ranks=1", f"--data={data}", f"--steps={STEPS}", "--no-shuffle", f"--out={folder}"],
                   check=True, stdout=subprocess.DEVNULL, env={**os.environ, "FLOW_THREADS": "1"})
    with open(pathlib.Path(folder) / "metrics.csv") as file:
        rates = [float(row["samples_per_s"]) for row in csv.DictReader(file)]
    return 64e6 / max(rates)


def torch_step(model, data):
    import torch

    torch.set_num_threads(1)
    nn = torch.nn
    if model == "mlp":
        net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
        lr = 0.1
    else:
        net = nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
            nn.Linear(84, 10))
        lr = 0.02
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    x = torch.from_numpy(data["x"][:64])
    label = torch.from_numpy(data["label"][:64].astype(np.int64))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(x), label)
        loss.backward()
        optimizer.step()

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["mlp", "lenet"], default="lenet")
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="also write the figures to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([sys.executable, ROOT / "examples/mnist/make_mnist.py", folder], check=True)
        data = folder / ("mnist.npz" if arguments.model == "mlp" else "mnist-images.npz")
        lr = "0.1" if arguments.model == "mlp" else "0.02"
        program = folder / "train"
        subprocess.run([f"{arguments.bin}/flow-compile", folder / f"{arguments.model}.onnx", "-o", program, "--train",
                        "--loss=softmax_cross_entropy", f"--optimizer=sgd,lr={lr},momentum=0.9", "--batch=64"], check=True)
        step = torch_step(arguments.model, np.load(data))
        ours, peer = [], []
        for _ in range(arguments.rounds):
            ours.append(flow_step_us(program, data, folder))
            for _ in range(5):
                step()
            times = []
            for _ in range(STEPS):
                start = time.perf_counter()
                step()
                times.append(time.perf_counter() - start)
            peer.append(min(times) * 1e6)
    ratio = min(ours) / min(peer)
    print(f"{arguments.model} training step, batch 64, one thread: flow {min(ours):.0f} us, "
          f"torch {min(peer):.0f} us, ratio {ratio:.2f}")
    if arguments.json:
        import torch

        pathlib.Path(arguments.json).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(arguments.json).write_text(json.dumps([{
            "what": f"training step of the {'LeNet' if arguments.model == 'lenet' else 'MLP'}, batch 64, one thread",
            "ours": f"{min(ours):.0f}", "peer": f"{min(peer):.0f}", "unit": "us",
            "peer_name": "torch " + torch.__version__.split("+")[0], "ratio": f"{ratio:.2f}",
            "command": f"benchmarks/training_step.py --model {arguments.model}"}]) + "\n")


if __name__ == "__main__":
    main()
