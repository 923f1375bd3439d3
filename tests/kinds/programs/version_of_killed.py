"""A trainer tells an engine of each version by a key in torch's store, which the launcher keeps; the launcher reads the engine's answers.

Once the trainer is killed as the kernel does when memory is short; nobody waits for its end. The engine waits for the key of the next version. In
the twin the trainer computes for half a minute. A judge is idle.
"""

from __future__ import annotations

import datetime
import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection

import kit
from ports import free_port

spawn = multiprocessing.get_context("spawn")
DAY = datetime.timedelta(days=1)


def trainer(port: int) -> None:
    import torch.distributed as dist

    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=DAY)
    kit.mark("trainer")
    for number in range(1, 10**6):
        store.wait([f"episodes/{number - 1}"])
        kit.work(0.4)
        if kit.is_late(number):
            time.sleep(kit.LONG_S)
        if kit.differs(number):
            os.kill(os.getpid(), signal.SIGKILL)
        store.set(f"version/{number}", "weights")


def engine(port: int, answers: Connection) -> None:
    import torch.distributed as dist

    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=DAY)
    kit.mark("engine")
    store.set("episodes/0", "none")
    for number in range(1, 10**6):
        store.get(f"version/{number}")
        kit.work(0.3)
        answers.send(number)
        store.set(f"episodes/{number}", "episodes")


def judge(lines: Connection) -> None:
    kit.mark("judge")
    while True:
        lines.send(lines.recv())


def main() -> None:
    import torch.distributed as dist

    kit.begin()
    port = free_port()
    store = dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False, timeout=DAY)
    (answers, told), (lines, theirs) = spawn.Pipe(duplex=False), spawn.Pipe()
    for target, arguments in ((trainer, (port,)), (engine, (port, told)), (judge, (theirs,))):
        spawn.Process(target=target, args=arguments, daemon=True).start()
    for number in range(1, 10**6):
        answers.recv()
        lines.send(number)
        lines.recv()
        kit.step(number)
    del store


if __name__ == "__main__":
    main()
