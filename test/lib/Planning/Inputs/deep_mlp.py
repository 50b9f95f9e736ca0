"""A 12-layer MLP (form II) of column/row pairs, placed on 8 and on 4,096 ranks."""
import subprocess
import time

SIZES = [513] + [1023, 511] * 5 + [1023, 37]
BATCH = 1029


def module():
    types = lambda *s: f"tensor<{'x'.join(map(str, s))}xf32>"
    globals_, body, value = "", "%zero = arith.constant 0.0 : f32\n", "%x"
    for k, (n, m) in enumerate(zip(SIZES, SIZES[1:]), 1):
        for name, t in ((f"fc{k}.weight", types(m, n)), (f"fc{k}.bias", types(m))):
            globals_ += f'ml_program.global private @{name}(dense<0.5> : {t}) : {t}\n'
            body += f"%{name} = ml_program.global_load_const @{name} : {t}\n"
        t = types(BATCH, m)
        body += f"""%e{k} = tensor.empty() : {t}
%f{k} = linalg.fill ins(%zero : f32) outs(%e{k} : {t}) -> {t}
%m{k} = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
  ins({value}, %fc{k}.weight : {types(BATCH, n)}, {types(m, n)}) outs(%f{k} : {t}) -> {t} loc("fc{k}")
%h{k} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
  ins(%m{k}, %fc{k}.bias : {t}, {types(m)}) outs(%e{k} : {t}) {{
^bb0(%p: f32, %q: f32, %o: f32):
  %s = arith.addf %p, %q : f32
  %g = arith.cmpf ogt, %s, %zero : f32
  %r = arith.select %g, %s, %zero : f32
  linalg.yield %r : f32
}} -> {t} loc("fc{k}")
"""
        value = f"%h{k}"
    out = types(BATCH, SIZES[-1])
    return (f'{globals_}func.func @main(%x: {types(BATCH, SIZES[0])} {{flow.name = "x", flow.kind = "input"}}) -> '
            f'({out} {{flow.name = "y", flow.kind = "output"}}) {{\n{body}return {value} : {out}\n}}\n')


def place(mesh):
    sbp = ";".join(f"fc{k}.weight=[B,S({(k + 1) % 2})]" for k in range(1, len(SIZES)))
    begin = time.time()
    done = subprocess.run(
        ["flow-opt", f"--flow-train=batch={BATCH} optimizer=sgd,lr=0.1,momentum=0.9",
         f"--flow-apply-constraints=mesh={mesh} sbp={sbp}", "--flow-distribute", "--flow-verify-distribution"],
        input=module(), capture_output=True, text=True)
    if done.returncode or done.stderr:
        raise RuntimeError(done.stderr[:2000])
    step = done.stdout.split("func.func @eval")[0]
    boxings = [line for line in step.splitlines() if "flow.boxing" in line]
    on_tp = [line for line in boxings if "[S(0), P(sum)]> ->" in line]
    print(f"{mesh}: activations forward {sum('backward' not in b for b in on_tp)}, backward "
          f"{sum('backward' in b for b in on_tp)}, gradients and loss {len(boxings) - len(on_tp)}")
    return len(done.stdout), time.time() - begin


small, _ = place("dp=2,tp=4")
large, seconds = place("dp=64,tp=64")
print("size grows by less than 1.01:", large < 1.01 * small)
print("placed in less than 60 s:", seconds < 60)  # a debug build on a busy machine: about 1 s of work
