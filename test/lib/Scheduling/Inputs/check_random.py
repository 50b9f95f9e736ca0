"""Schedules random programs in several ways; every plan must pass the verifier,
and stay within a bound of its live bytes: python check_random.py FLOW_OPT COUNT."""
import pathlib
import re
import subprocess
import sys

flow_opt, count = sys.argv[1], int(sys.argv[2])
here = pathlib.Path(__file__).parent
worst = 1.0
for seed in range(count):
    program = subprocess.run([sys.executable, here / "random_program.py", str(seed)], check=True, capture_output=True).stdout
    for options in ["", "template=gpipe", "comm=late", f"seed={seed + 1}"]:
        run = subprocess.run([flow_opt, "-", f"--flow-schedule=report {options}", "--flow-verify-schedule"], input=program, capture_output=True)
        text = run.stderr.decode()
        if run.returncode:
            sys.exit(f"program {seed} with '{options}':\n{text}")
        if options == "":
            for live, arena in re.findall(r"(\d+) bytes live at once, (\d+) bytes of arena", text):
                worst = max(worst, int(arena) / max(1, int(live)))
print(f"arena at most {worst:.2f} of the live bytes")
