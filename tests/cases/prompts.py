"""Programs behind the cases of prompts, without Ray: ``python tests/cases/prompts.py question``, ``password``, ``answered``, or ``console``.

Three ranks train, started from one terminal. In ``question`` rank 1 asks there whether it may overwrite a checkpoint, in ``password`` for a token;
nobody answers. In ``answered`` it asks at each step, and answers come. In ``console`` all ranks go on, and a person's console beside them waits for
the next line. Prints the launcher's pid when that is reached, and stays until stdin closes. Then: ``rayrl-debug snapshot --pid PID -o DIR``, which
takes its children as well, and ``store.py``.
"""

from __future__ import annotations

import getpass
import os
import pty
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path

WORLD = 3
FATAL_STEP = 3


def save_checkpoint(kind: str) -> None:
    if kind == "password":
        getpass.getpass("token: ")
    else:
        input("checkpoint exists, overwrite it? [y/N] ")


def rank(kind: str, number: int, folder: str) -> None:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=number, world_size=WORLD, timeout=timedelta(hours=1))
    step = 0
    while True:
        step += 1
        if number == 1 and step >= FATAL_STEP:
            Path(folder, "reached").touch()
            if kind != "console":
                save_checkpoint(kind)
        time.sleep(0.05)
        dist.all_reduce(torch.ones(1))


def console() -> None:
    while True:
        input("metric> ")


def types_answers(keyboard: int) -> None:
    while True:
        os.write(keyboard, b"y\n")
        time.sleep(0.3)


def ends_with_stdin(started: list[subprocess.Popen[bytes]]) -> None:
    sys.stdin.read()
    for process in started:
        process.kill()


def main(kind: str) -> None:
    keyboard, terminal = pty.openpty()
    folder = tempfile.mkdtemp(prefix="prompts-")
    started = []
    for arguments in [["rank", kind, str(number), folder] for number in range(WORLD)] + ([["console"]] if kind == "console" else []):
        place = {name: str(value) for name, value in (("RANK", arguments[2]), ("WORLD_SIZE", WORLD))} if len(arguments) > 1 else {}
        command = [sys.executable, os.path.abspath(__file__), "run", *arguments]
        started.append(subprocess.Popen(command, stdin=terminal, stdout=terminal, start_new_session=True, env={**os.environ, **place}))
    if kind == "answered":
        threading.Thread(target=types_answers, args=(keyboard,), daemon=True).start()
    threading.Thread(target=ends_with_stdin, args=(started,), daemon=True).start()
    while not Path(folder, "reached").exists():
        time.sleep(0.2)
    time.sleep(3.0)
    print(os.getpid(), flush=True)
    for process in started:
        process.wait()


if __name__ == "__main__":
    if sys.argv[1:3] == ["run", "console"]:
        console()
    elif sys.argv[1] == "run":
        rank(sys.argv[3], int(sys.argv[4]), sys.argv[5])
    else:
        main(sys.argv[1])
