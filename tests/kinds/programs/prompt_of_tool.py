"""An agent of coroutines hands each prompt to a tool, a program of its own, and then reads what it prints; the tool repeats each line as it reads it.

Once a prompt and what is printed of it are both longer than the pipes hold: the agent waits for the tool to read, the tool for the agent. In the twin
prompts are short, and the tool takes long now and then. A task beside writes a heartbeat.
"""

from __future__ import annotations

import asyncio
import sys
import time

import kit


def tool() -> None:
    kit.mark("tool")
    for line in sys.stdin:
        number = int(line.split()[0])
        kit.work(0.2 if line.endswith(" first\n") else 0.0005)
        if kit.is_late(number):
            time.sleep(kit.LONG_S)
        sys.stdout.write(line)
        sys.stdout.flush()


async def beat() -> None:
    while True:
        (kit.folder() / "heartbeat").write_text(str(time.time()))
        await asyncio.sleep(2)


async def main() -> None:
    beats = asyncio.create_task(beat())
    command = [sys.executable, __file__, "tool"]
    child = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=2**16)
    assert child.stdin and child.stdout
    for number in range(1, 10**6):
        lines = [f"{number} first\n"] + [f"{number} {'word ' * 200}\n"] * (3000 if kit.differs(number) else 3)
        kit.mark("main")
        child.stdin.write("".join(lines).encode())
        await child.stdin.drain()
        for _ in lines:
            await child.stdout.readline()
        kit.step(number)
    beats.cancel()


if __name__ == "__main__":
    if sys.argv[1] == "tool":
        tool()
    else:
        kit.begin()
        asyncio.run(main())
