"""A trainer asks its engine, a child with pipes, from an event loop; a thread reads the answers and completes the futures of the requests.

Once a future is completed from that thread without waking the loop: nothing else wakes it. In the twin the engine answers late.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import kit


def engine() -> None:
    kit.mark("engine")
    for line in sys.stdin:
        step = int(line)
        time.sleep(0.3)
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        print(step, flush=True)


async def train(child: subprocess.Popen[str]) -> None:
    loop = asyncio.get_running_loop()
    waiting: dict[int, asyncio.Future[int]] = {}

    def read() -> None:
        assert child.stdout is not None
        for line in child.stdout:
            step = int(line)
            if kit.differs(step):
                waiting.pop(step).set_result(step)
                kit.mark("main")
            else:
                loop.call_soon_threadsafe(waiting.pop(step).set_result, step)

    threading.Thread(target=read, name="answers", daemon=True).start()
    assert child.stdin is not None
    for step in range(1, 10**6):
        future = waiting[step] = loop.create_future()
        child.stdin.write(f"{step}\n")
        child.stdin.flush()
        await future
        kit.work(0.2)
        kit.step(step)


def main() -> None:
    kit.begin()
    child = subprocess.Popen([sys.executable, __file__, "engine"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    asyncio.run(train(child))


if __name__ == "__main__":
    engine() if sys.argv[1] == "engine" else main()
