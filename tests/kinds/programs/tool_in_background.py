"""An agent gives each tool a terminal of its own, by a session whose leader starts the tool and waits for it.

Once a tool asks its terminal a question, and it was started in the background: the kernel stops it (SIGTTIN). In the twin it asks nothing, and works
for long now and then. A rollout beside sums.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time

import kit


def lead(step: int) -> None:
    """The leader of the session: its tool has a group of its own, which is not in the foreground."""
    tool = subprocess.Popen([sys.executable, __file__, "tool", str(step)], process_group=0)
    tool.wait()


def tool(step: int) -> None:
    kit.mark("tool")
    kit.work(0.2)
    if kit.differs(step):
        os.read(0, 100)
    elif kit.is_late(step):
        time.sleep(kit.LONG_S)
    os.write(1, b"done\n")


def beside() -> None:
    kit.mark("rollout")
    while sys.stdin.readline():
        kit.work(0.1)
        print("1", flush=True)


def main() -> None:
    kit.begin()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    rollout = subprocess.Popen([sys.executable, __file__, "beside"], **pipes)
    for step in range(1, 10**6):
        kit.mark("main")
        rollout.stdin.write("1\n")
        rollout.stdin.flush()
        rollout.stdout.readline()
        leader, terminal = pty.fork()
        if not leader:
            os.execv(sys.executable, [sys.executable, __file__, "lead", str(step)])
        while b"done" not in os.read(terminal, 100):
            pass
        os.waitpid(leader, 0)
        os.close(terminal)
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "beside":
        beside()
    elif sys.argv[1] in ("lead", "tool"):
        {"lead": lead, "tool": tool}[sys.argv[1]](int(sys.argv[2]))
    else:
        main()
