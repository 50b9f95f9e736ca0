"""One model, several orders of its work: every rank's trace follows the plan
that was compiled, and losses and weights are the same bits, whatever delays the
actors. python check_orders.py FLOW_COMPILE TMP"""
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

compiler, tmp = sys.argv[1], pathlib.Path(sys.argv[2])
tmp.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(3)
rows, batch, widths = 3, 12, [5, 7, 4]  # rows of one micro-batch


def dense(array):
    return f"dense<{json.dumps(array.tolist())}> : tensor<{'x'.join(map(str, array.shape))}xf32>"


def write_model(path):
    text = "#id = affine_map<(i, j) -> (i, j)>\n#row = affine_map<(i, j) -> (j)>\n"
    body, value = "  %zero = arith.constant 0.0 : f32\n", "%x"
    for i, (n, m) in enumerate(zip(widths, widths[1:]), 1):
        w, b = rng.standard_normal((n, m)).astype(np.float32), rng.standard_normal(m).astype(np.float32)
        text += f"ml_program.global private @w{i}({dense(w)}) : tensor<{n}x{m}xf32>\n"
        text += f"ml_program.global private @b{i}({dense(b)}) : tensor<{m}xf32>\n"
        t = f"tensor<{rows}x{m}xf32>"
        body += f"""  %w{i} = ml_program.global_load_const @w{i} : tensor<{n}x{m}xf32>
  %b{i} = ml_program.global_load_const @b{i} : tensor<{m}xf32>
  %e{i} = tensor.empty() : {t}
  %f{i} = linalg.fill ins(%zero : f32) outs(%e{i} : {t}) -> {t}
  %m{i} = linalg.matmul ins({value}, %w{i} : tensor<{rows}x{n}xf32>, tensor<{n}x{m}xf32>) outs(%f{i} : {t}) -> {t} loc("fc{i}")
  %h{i} = linalg.generic {{indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%m{i}, %b{i} : {t}, tensor<{m}xf32>) outs(%e{i} : {t}) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    %r = math.tanh %s : f32
    linalg.yield %r : f32
  }} -> {t} loc("fc{i}")
"""
        value = f"%h{i}"
    text += f'func.func @main(%x: tensor<{rows}x{widths[0]}xf32> {{flow.name = "x", flow.kind = "input"}})'
    text += f' -> ({t} {{flow.name = "y", flow.kind = "output"}}) {{\n{body}  return {value} : {t}\n}}\n'
    path.write_text(text)


def read_plan(text):
    """rank -> stream -> [(actor, micro-batch)] of the program "step"."""
    plan, orders, ranks, stream, names = {}, None, [], None, {}
    size, in_step = 2, False
    for line in text.splitlines():
        if found := re.search(r'actor\.program "(\w+)"', line):
            in_step = found[1] == "step"
        elif not in_step:
            continue
        elif found := re.search(r"actor\.class stage (\d+) from \[(\d+)\] to \[(\d+)\]", line):
            orders, names = {}, {}
            for r in range(int(found[2]), int(found[3])):
                plan[int(found[1]) * size + r] = orders
        elif found := re.search(r"actor\.order\s+(\w+)", line):
            stream = orders.setdefault(found[1], [])
        elif found := re.search(r"actor\.fire (%\S+) micro_batch (\d+)", line):
            stream.append((names[found[1]], int(found[2])))
        elif found := re.search(r'(%\S+) = actor\.\w+ [^"]*"([^"]*)"', line):
            names[found[1]] = found[2]
    return plan


def read_trace(path, step):
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X" and e["args"].get("step") == step]
    trace = {}
    for e in sorted(events, key=lambda e: e["ts"]):
        if e["args"]["program"] == "step":
            stream = ["compute", "comm", "io"][e["tid"]]
            trace.setdefault(e["pid"], {}).setdefault(stream, []).append((e["name"], e["args"]["micro_batch"]))
    return trace


model = tmp / "m.mlir"
write_model(model)
x = rng.standard_normal((60, widths[0])).astype(np.float32)
np.savez(tmp / "d.npz", x=x, label=rng.integers(0, widths[-1], 60))
bits, orders_seen = set(), set()
for schedule in ["template=1f1b", "template=gpipe", "comm=late", "seed=7"]:
    flags = [str(model), "--train", f"--batch={batch}", "--optimizer=sgd,lr=0.1,momentum=0.9", "--mesh=dp=2", "--stage=fc2=1",
             f"--micro-batches={batch // rows}", f"--schedule={schedule}"]
    program = tmp / schedule.replace("=", "-")
    subprocess.run([compiler, *flags, "-o", program], check=True)
    text = subprocess.run([compiler, *flags, "--emit=mlir:schedule", "-o", "-"], check=True, capture_output=True, text=True).stdout
    plan = read_plan(text)
    assert sorted(plan) == [0, 1, 2, 3], sorted(plan)
    orders_seen.add(repr(plan))
    for delays in ["", "1:1000"]:
        out = tmp / f"{program.name}-{delays.replace(':', '-')}"
        out.mkdir(exist_ok=True)
        environment = dict(os.environ, **({"FLOW_TEST_DELAY_US": delays} if delays else {}))
        subprocess.run([program, "--ranks=4", f"--data={tmp}/d.npz", "--steps=5", "--no-shuffle", f"--out={out}", f"--trace={out}/t.json"],
                       check=True, env=environment, stdout=subprocess.DEVNULL)
        losses = [line.split(",")[2] for line in (out / "metrics.csv").read_text().splitlines()[1:]]
        bits.add((tuple(losses), (out / "model.safetensors").read_bytes()))
        for step in (1, 3):
            trace = read_trace(out / "t.json", step)
            for rank, streams in plan.items():
                for stream, order in streams.items():
                    got = trace.get(rank, {}).get(stream, [])
                    assert got == order, f"{schedule}, delays {delays}, rank {rank}, {stream}:\nplan  {order}\ntrace {got}"
assert len(bits) == 1, "results depend on the order"
print(f"{len(orders_seen)} orders, one result")
