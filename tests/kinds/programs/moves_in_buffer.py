"""A driver of coroutines plays with four environments, programs of their own that read a line and print one; another coroutine writes that it lives.

One environment prints without flushing, and reads the next line. In the twin some take long for a move.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time

import kit


def environment(number: int) -> None:
    for line in sys.stdin:
        step = int(line)
        kit.mark(f"environment{number}")
        time.sleep(random.uniform(0.05, 0.4))
        if kit.is_late(step):
            time.sleep(kit.LONG_S - 6 * number)
        print("move", flush=not (number == 2 and kit.differs(step)))


async def ask(one: asyncio.subprocess.Process, step: int) -> bytes:
    assert one.stdin is not None and one.stdout is not None
    one.stdin.write(b"%d\n" % step)
    await one.stdin.drain()
    return await one.stdout.readline()


async def beat() -> None:
    while True:
        await asyncio.sleep(10)
        (kit.folder() / "alive").touch()


async def main() -> None:
    pipe = asyncio.subprocess.PIPE
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    environments = [await asyncio.create_subprocess_exec(sys.executable, __file__, str(n), stdin=pipe, stdout=pipe, env=usual) for n in range(4)]
    beating = asyncio.create_task(beat())
    for step in range(1, 10**6):
        await asyncio.gather(*(ask(one, step) for one in environments))
        await asyncio.sleep(kit.pause() * 0.3)
        kit.step(step)
    await beating


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        environment(int(sys.argv[1]))
    else:
        kit.begin()
        asyncio.run(main())
