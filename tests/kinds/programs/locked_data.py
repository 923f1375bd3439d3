"""Coroutines read shards in the loop's threads, each under the lock of the data folder; another program cleans the folder now and then."""

from __future__ import annotations

import asyncio
import fcntl
import subprocess
import sys
import threading

import kit


def read_shard(n: int) -> int:
    kit.work(0.1)
    with (kit.folder() / "data.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        kit.work(0.1)
    return n


def clean() -> None:
    kit.mark("cleaner")
    for step in range(1, 10**6):
        with (kit.folder() / "data.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            kit.work(0.1)
            if kit.differs(step):
                kit.mark("cleaner")
                threading.Semaphore(0).acquire()
        kit.work(0.6)


async def read() -> None:
    for step in range(1, 10**6):
        kit.mark("main")
        await asyncio.gather(*(asyncio.to_thread(read_shard, n) for n in range(10)))
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "clean":
        clean()
    else:
        kit.begin()
        subprocess.Popen([sys.executable, __file__, "clean"])
        kit.until_there("cleaner")
        asyncio.run(read())
