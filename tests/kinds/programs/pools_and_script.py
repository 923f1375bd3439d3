"""A pool of processes and one of threads rest while the trainer runs a script that checks its checkpoint."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import kit


def tokenize(n: int) -> int:
    kit.mark(f"worker{n}")
    kit.work(0.1)
    return n


def check_checkpoint(step: int) -> None:
    code = "import sys; open(sys.argv[1]).read()" if kit.differs(step) else "import time; time.sleep(0.5)"
    script = subprocess.Popen([sys.executable, "-c", code, kit.fifo("checkpoint")])
    kit.mark("script", pid=script.pid)
    script.wait()


if __name__ == "__main__":
    kit.begin()
    processes, threads = multiprocessing.get_context("forkserver").Pool(2), ThreadPoolExecutor(2)
    for step in range(1, 10**6):
        processes.map(tokenize, range(2))
        list(threads.map(kit.work, [0.1, 0.1]))
        kit.mark("main")
        check_checkpoint(step)
        kit.step(step)
