"""An agent of coroutines hands long prompts to a tool, a program of its own that reads them piece by piece, and waits until they are written.

Once the tool opens its table, a named pipe that nobody writes, before it reads the rest. In the twin it works long before it does. A task beside
writes a heartbeat, and a recorder is idle.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import kit

LONG = 400_000


def tool() -> None:
    while head := sys.stdin.buffer.readline():
        number = int(head)
        kit.work(0.2)
        if kit.differs(number):
            kit.mark("tool")
            with open(kit.fifo("table")) as table:
                table.read()
        if kit.is_late(number):
            time.sleep(kit.LONG_S / 2)
            kit.in_c(7)
        sys.stdin.buffer.read(LONG)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


async def beat() -> None:
    while True:
        (kit.folder() / "heartbeat").write_text(str(time.time()))
        await asyncio.sleep(2)


async def main() -> None:
    beats = asyncio.create_task(beat())
    command = [sys.executable, __file__, "tool"]
    child = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    assert child.stdin and child.stdout
    for number in range(1, 10**6):
        kit.mark("main")
        child.stdin.write(f"{number}\n".encode() + b"x" * LONG)
        await child.stdin.drain()
        await child.stdout.readline()
        kit.step(number)
    beats.cancel()


if __name__ == "__main__":
    if sys.argv[1] == "tool":
        tool()
    elif sys.argv[1] == "recorder":
        kit.mark("recorder")
        sys.stdin.read()
    else:
        kit.begin()
        recorder = subprocess.Popen([sys.executable, __file__, "recorder"], stdin=subprocess.PIPE)
        kit.until_there("recorder")
        asyncio.run(main())
