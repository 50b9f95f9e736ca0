# Runs a command on a pseudo-terminal and prints what it wrote, control characters visible.
import os
import pty
import sys

child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
written = b""
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:  # the other side is closed
        break
    if not data:
        break
    written += data
print(written.decode().replace("\r\n", "\n").replace("\r", "<CR>").replace("\x1b[K", "<CLEAR>"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
