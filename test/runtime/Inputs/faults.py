# Ends ranks and supervisors of a running training and watches what is left.
# usage: faults.py PROGRAM DATA OUT
import os
import signal
import subprocess
import sys
import time

program, data, out = sys.argv[1:4]


def start(*flags):
    p = subprocess.Popen(
        [program, "--ranks=3", "--data=" + data, "--steps=1000000000", "--out=" + out, *flags],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.time() + 20
    while time.time() < deadline:
        children = open(f"/proc/{p.pid}/task/{p.pid}/children").read().split()
        # Running: the first steps are written.
        if len(children) == 3 and os.path.getsize(out + "/metrics.csv") > 100:
            return p, [int(c) for c in children]
        time.sleep(0.01)
    raise SystemExit("the training did not start")


def alive(pid):
    # Whoever adopts orphans may be slow to reap them.
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pids, seconds):
    deadline = time.time() + seconds
    while time.time() < deadline:
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.005)
    return False


def shared_memory():
    return {f for f in os.listdir("/dev/shm") if "flow" in f}


before = shared_memory()
for rank, number in (1, signal.SIGKILL), (0, signal.SIGSEGV), (2, signal.SIGTERM):
    p, ranks = start()
    os.kill(ranks[rank], number)
    begin = time.time()
    _, text = p.communicate(timeout=20)
    assert text == f"rank {rank} died (signal {int(number)})\n", text
    assert p.returncode == 75, p.returncode
    assert time.time() - begin < 1.5, time.time() - begin
    assert not any(os.path.exists(f"/proc/{pid}") for pid in ranks)

# A killed supervisor leaves no rank behind.
p, ranks = start()
p.kill()
p.wait()
p.stderr.close()
assert gone(ranks, 1.5)

# Ctrl-C goes to the whole group and ends all without a word.
p, ranks = start()
os.killpg(p.pid, signal.SIGINT)
_, text = p.communicate(timeout=20)
assert text == "" and p.returncode == 130, (text, p.returncode)
assert gone(ranks, 1)

# A stopped rank is found by the limit of waits, and named.
os.environ["FLOW_WAIT_LIMIT_S"] = "0.5"
p, ranks = start()
os.kill(ranks[1], signal.SIGSTOP)
_, text = p.communicate(timeout=20)
assert "for rank 1" in text and text.count("\n") == 1 and p.returncode == 75, (text, p.returncode)
assert gone(ranks, 1)
assert shared_memory() == before
print("nothing is left behind")
