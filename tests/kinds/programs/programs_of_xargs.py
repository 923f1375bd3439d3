"""A driver has ``xargs`` run checks of answers, two at once, each a small program of the shell.

Once a check reads from a named pipe that nobody writes to. In the twin a check takes long now and then. A rollout is idle.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import kit

CHECK = 'echo $$ > "$0/check.pid"; if test -p "$1"; then read -r line < "$1"; else sleep "$1"; fi'


def rollout() -> None:
    kit.mark("rollout")
    while sys.stdin.readline():
        kit.work(0.2)
        print("1", flush=True)


def main() -> None:
    kit.begin()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    rollouts = subprocess.Popen([sys.executable, __file__, "rollout"], **pipes)
    for step in range(1, 10**6):
        kit.mark("main")
        rollouts.stdin.write("1\n")
        rollouts.stdin.flush()
        rollouts.stdout.readline()
        last = kit.fifo("answers") if kit.differs(step) else str(kit.LONG_S) if kit.is_late(step) else "0.2"
        command = ["xargs", "-P", "2", "-n", "1", "sh", "-c", CHECK, str(kit.folder())]
        checks = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
        checks.stdin.write(f"0.3 0.2 {last}\n")
        checks.stdin.close()
        if kit.differs(step):
            while not (pid := pid_of_last(kit.folder() / "check.pid")):
                pass
            kit.mark("check", pid)
        checks.wait()
        kit.step(step)


def pid_of_last(path: Path) -> int | None:
    """The process that stands in the opening of the pipe."""
    try:
        pid = int(path.read_text())
        return pid if Path(f"/proc/{pid}/wchan").read_text() == "wait_for_partner" else None
    except (OSError, ValueError):
        return None


if __name__ == "__main__":
    if sys.argv[1] == "rollout":
        rollout()
    else:
        main()
