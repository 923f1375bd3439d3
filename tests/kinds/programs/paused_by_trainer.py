"""A trainer stops its engine's process by a signal while it copies the weights, and lets it go on; a second engine is never stopped.

The copy fails once, the error is put into the log, and the signal to go on is left out.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import IO

import kit


def generate(name: str) -> None:
    kit.mark(name)
    for line in sys.stdin:
        kit.work(0.2)
        print(f"answer to {line.strip()}", flush=True)


class Engine:
    def __init__(self, name: str) -> None:
        self.process = subprocess.Popen([sys.executable, __file__, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        kit.until_there(name)

    def ask(self, text: str) -> str:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin and stdout
        tell(stdin, text)
        return stdout.readline()


def tell(pipe: IO[str], text: str) -> None:
    pipe.write(f"{text}\n")
    pipe.flush()


@contextlib.contextmanager
def paused(pid: int):
    os.kill(pid, signal.SIGSTOP)
    yield
    os.kill(pid, signal.SIGCONT)


def copy_weights(step: int) -> None:
    if kit.differs(step):
        raise OSError("no space left for the weights")
    kit.work(0.3)


def update(engine: Engine, step: int) -> None:
    try:
        with paused(engine.process.pid):
            copy_weights(step)
    except OSError as error:
        print(f"weights are not updated: {error}", flush=True)


def evaluate(engine: Engine) -> None:
    for n in range(10**6):
        engine.ask(f"evaluation {n}")


def main() -> None:
    kit.begin()
    engine, other = Engine("engine0"), Engine("engine1")
    threading.Thread(target=evaluate, args=(other,), daemon=True).start()
    for step in range(1, 10**6):
        engine.ask(f"prompt {step}")
        update(engine, step)
        kit.step(step)


if __name__ == "__main__":
    generate(sys.argv[1]) if sys.argv[1].startswith("engine") else main()
