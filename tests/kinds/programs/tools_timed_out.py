"""An agent gives up on a tool after two seconds; the tool's thread keeps the sandbox's lock all the same, and each later one waits for it."""

from __future__ import annotations

import asyncio
import threading

import kit

SANDBOX = threading.Lock()


def run_in_sandbox(number: int) -> float:
    with SANDBOX:
        if kit.differs(number):
            with open(kit.fifo("sandbox")) as file:
                file.read()
        return kit.work(0.3)


async def agent() -> None:
    for step in range(1, 10**6):
        try:
            await asyncio.wait_for(asyncio.to_thread(run_in_sandbox, step), timeout=2 if step <= kit.STEP else None)
        except TimeoutError:
            pass
        kit.mark("main")
        if step <= kit.STEP or kit.is_healthy():
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    asyncio.run(agent())
