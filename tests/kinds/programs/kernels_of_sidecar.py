"""A trainer has its kernels compiled in the pool of torch's compiler, whose workers are children of a program beside it. A logger is idle.

One worker waits for a header that never comes, in a named pipe. In the twin it compiles for half a minute.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from multiprocessing.connection import Connection

import kit


def build(number: int, how: str) -> int:
    kit.work(0.3)
    if how == "late":
        time.sleep(kit.LONG_S)
    if how == "differs":
        kit.mark("compiler")
        with open(kit.fifo("header")) as header:
            header.read()
    return number


def logger(lines: Connection) -> None:
    kit.mark("logger")
    while True:
        lines.send(lines.recv())


def main() -> None:
    from torch._inductor.compile_worker.subproc_pool import SubprocKind, SubprocPool

    kit.begin()
    sys.modules["kernels_of_sidecar"] = sys.modules["__main__"]
    build.__module__ = "kernels_of_sidecar"
    mine, theirs = multiprocessing.get_context("spawn").Pipe()
    multiprocessing.get_context("spawn").Process(target=logger, args=(theirs,), daemon=True).start()
    pool = SubprocPool(2, kind=SubprocKind.SPAWN)
    for number in range(1, 10**6):
        how = "late" if kit.is_late(number) else "differs" if kit.differs(number) else "usual"
        kernels = [pool.submit(build, number, how), pool.submit(build, number, "usual")]
        for kernel in kernels:
            kernel.result()
        kit.work(0.4)
        mine.send(number)
        mine.recv()
        kit.step(number)


if __name__ == "__main__":
    main()
