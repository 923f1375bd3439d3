"""Coroutines run checkers as programs of their own and await what they print."""

from __future__ import annotations

import asyncio
import sys

import kit

GOOD = "import time; time.sleep(0.4); print('good')"
OTHER = "import socket; s = socket.create_server(('127.0.0.1', 0)); s.accept()"


async def check(n: int, step: int) -> bytes:
    code = OTHER if n == 1 and kit.differs(step) else GOOD
    checker = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    if code is OTHER:
        kit.mark("checker", pid=checker.pid)
    told, _ = await checker.communicate()
    return told


async def run() -> None:
    for step in range(1, 10**6):
        kit.mark("main")
        await asyncio.gather(*(check(n, step) for n in range(3)))
        await asyncio.sleep(kit.pause() * 0.3)
        kit.step(step)


if __name__ == "__main__":
    kit.begin()
    asyncio.run(run())
