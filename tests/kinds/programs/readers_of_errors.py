"""An agent keeps sandboxes, programs that it asks over their input; a thread of the loop's pool reads what each complains of, another its answers.

With as many sandboxes as threads all threads read complaints, which are none, and no answer is read. In the twin there are threads enough.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import kit

THREADS = 4


def sandbox(name: str) -> None:
    kit.mark(name)
    for line in sys.stdin:
        kit.work(0.2)
        if kit.is_late(int(line)):
            time.sleep(kit.LONG_S / 3)
            kit.in_c(6)
        print(line.strip(), flush=True)


class Box:
    def __init__(self, number: int) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.program = subprocess.Popen([sys.executable, __file__, f"sandbox{number}"], **pipes)
        self.complaints = asyncio.create_task(self.watch())

    async def watch(self) -> None:
        while await asyncio.to_thread(self.program.stderr.readline):
            pass

    async def ask(self, step: int) -> str:
        self.program.stdin.write(f"{step}\n")
        self.program.stdin.flush()
        return await asyncio.to_thread(self.program.stdout.readline)


async def main() -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS + (2 if kit.is_healthy() else 0)))
    boxes = [Box(number) for number in range(2)]
    for step in range(1, 10**6):
        kit.mark("main")
        if kit.differs(step):
            boxes += [Box(number) for number in range(2, 4)]
            await asyncio.sleep(1)
        await asyncio.gather(*[box.ask(step) for box in boxes])
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1].startswith("sandbox"):
        sandbox(sys.argv[1])
    else:
        kit.begin()
        asyncio.run(main())
