"""Distributes, localizes and schedules a 12-layer MLP step on 4,096 and on 8
ranks: python many_ranks.py FLOW_OPT TMP. Prints CPU seconds and the sizes."""
import pathlib
import resource
import subprocess
import sys

flow_opt, tmp = sys.argv[1], pathlib.Path(sys.argv[2])
here = pathlib.Path(__file__).parent
tmp.mkdir(parents=True, exist_ok=True)


def compile_for(name, mesh, batch):
    model = tmp / f"{name}.mlir"
    model.write_bytes(subprocess.run([sys.executable, here / "mlp_step.py", "12", str(batch), "96"], check=True, capture_output=True).stdout)
    out = tmp / f"{name}.out.mlir"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([flow_opt, model, f"--flow-train=batch={batch} optimizer=sgd,lr=0.1,momentum=0.9",
                    f"--flow-apply-constraints=mesh={mesh} sbp=w*=[B,S(1)]", "--flow-distribute", "--flow-localize",
                    "--flow-form-kernels", "--flow-ccl-to-actor", "--flow-schedule", "--flow-verify-schedule", "-o", out], check=True)
    return out.stat().st_size, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


small, _ = compile_for("small", "dp=4,tp=2", 64)
large, seconds = compile_for("large", "dp=512,tp=8", 8192)
print(f"4096 ranks: {seconds:.1f} s, {large} bytes; 8 ranks: {small} bytes")
if large > 1.2 * small or seconds > 10:
    sys.exit("too slow or too large")
