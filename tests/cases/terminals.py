"""Programs behind the cases of terminals, without Ray: ``python tests/cases/terminals.py paused``, ``unread``, or ``slow``.

Three ranks train, started from one terminal, and rank 1 prints a line at each step. In ``paused`` somebody pressed Ctrl-S there; in ``unread`` the
program that shows the terminal is stopped. In ``slow`` it shows a little at a time, and the run goes on. Prints the launcher's pid when that is
reached, and stays until stdin closes. Then: ``rayrl-debug snapshot --pid PID -o DIR``, which takes its children as well, and ``store.py``.
"""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path

WORLD = 3
FATAL_STEP = 3
STILL_S = 3.0
AT_A_TIME = 1 << 12
CTRL_S = b"\x13"
ME = [sys.executable, os.path.abspath(__file__), "run"]


def prints(step: int) -> None:
    print(f"step {step}: reward 0.41, " + "kl 0.02, " * 400, flush=True)


def forward() -> None:
    time.sleep(0.1)


def backward() -> None:
    time.sleep(0.15)


def rank(number: int, folder: str) -> None:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=number, world_size=WORLD, timeout=timedelta(hours=1))
    for step in range(1 << 30):
        if number == 1:
            prints(step)
            Path(folder, "steps").write_text(str(step))
        forward()
        backward()
        dist.all_reduce(torch.ones(1))


def shows(keyboard: int, pause_s: float) -> None:
    """The program of the terminal: it reads what comes, at most so much at a time."""
    while os.read(keyboard, AT_A_TIME):
        time.sleep(pause_s)


def launch(folder: str) -> None:
    """What was typed at the terminal: it starts the ranks, and waits for them."""
    started = []
    for number in range(WORLD):
        place = {"RANK": str(number), "WORLD_SIZE": str(WORLD)}
        started.append(subprocess.Popen([*ME, "rank", folder, str(number)], env={**os.environ, **place}))
    threading.Thread(target=ends_with_stdin, args=(started,), daemon=True).start()
    for process in started:
        process.wait()


def ends_with_stdin(started: list[subprocess.Popen[bytes]]) -> None:
    sys.stdin.read()
    for process in started:
        process.kill()


def waits_for_step(steps: Path, wanted: int, *, or_stands: bool = False) -> None:
    """Until the run has come so far, or prints nothing more."""
    while not steps.exists() or int(steps.read_text() or 0) < wanted:
        if or_stands and time.time() - steps.stat().st_mtime > STILL_S:
            return
        time.sleep(0.1)


def main(kind: str) -> None:
    keyboard, terminal = pty.openpty()
    folder = tempfile.mkdtemp(prefix="terminals-")
    shown = subprocess.Popen([*ME, "shows", str(keyboard), "0.8" if kind == "slow" else "0"], pass_fds=[keyboard], stdin=subprocess.DEVNULL)
    launcher = subprocess.Popen([*ME, "launch", folder], stdout=terminal)
    os.close(terminal)
    waits_for_step(Path(folder, "steps"), FATAL_STEP)
    if kind == "paused":
        os.write(keyboard, CTRL_S)
    if kind == "unread":
        shown.send_signal(signal.SIGSTOP)
    os.close(keyboard)
    waits_for_step(Path(folder, "steps"), 8 * FATAL_STEP, or_stands=kind != "slow")
    print(launcher.pid, flush=True)
    launcher.wait()
    shown.kill()


if __name__ == "__main__":
    if sys.argv[1] == "run":
        what, *words = sys.argv[2:]
        if what == "shows":
            shows(int(words[0]), float(words[1]))
        elif what == "launch":
            launch(*words)
        else:
            rank(int(words[1]), words[0])
    else:
        main(sys.argv[1])
