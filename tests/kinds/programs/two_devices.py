"""Programs share two devices by locks on files; a trainer and a generator take both, an evaluator takes the first."""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
import sys
import time
from collections.abc import Iterator

import kit


@contextlib.contextmanager
def device(n: int) -> Iterator[None]:
    with (kit.folder() / f"device{n}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def use(name: str) -> None:
    for step in range(1, 10**6):
        differs = name != "evaluator" and kit.differs(step)
        first, second = (1, 0) if differs and name == "generator" else (0, 1)
        kit.mark(name)
        with device(first):
            kit.work(0.1)
            if name != "evaluator":
                time.sleep(2 if differs else 0.01)
                kit.mark(name)
                with device(second):
                    kit.work(0.1)
        if name == "trainer":
            kit.step(step)
        kit.work(0.1)


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] in ("trainer", "generator", "evaluator"):
        use(sys.argv[1])
    else:
        kit.begin()
        programs = [subprocess.Popen([sys.executable, __file__, name]) for name in ("trainer", "generator", "evaluator")]
        for program in programs:
            program.wait()
