"""Coroutines of an agent run tools in a shell. One that takes too long is killed, and what it has printed is read to the end.

The kill meets the shell only: a server that it has started lives on and holds the output open. In the twin the whole group is killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import kit

SERVER = "import kit, socket; s = socket.create_server(('127.0.0.1', 0)); kit.mark('server'); s.accept()"


async def run_tool(agent: int, number: int) -> bytes:
    python = f"PYTHONPATH={Path(__file__).parent} {sys.executable}"
    hangs = agent == 1 and (kit.differs(number) or number % 3 == 0)
    command = f'echo starts; {python} -c "{SERVER}"; echo ends' if hangs else f"sleep {kit.pause()}; echo through"
    tool = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE, start_new_session=True)
    try:
        await asyncio.wait_for(tool.wait(), 4.0)
    except asyncio.TimeoutError:
        if kit.differs(number):
            tool.kill()
        else:
            os.killpg(tool.pid, signal.SIGKILL)
    return (await tool.communicate())[0]


async def main() -> None:
    for number in range(1, 10**6):
        await asyncio.gather(*(run_tool(agent, number) for agent in range(2)))
        kit.step(number)


if __name__ == "__main__":
    kit.begin()
    asyncio.run(main())
