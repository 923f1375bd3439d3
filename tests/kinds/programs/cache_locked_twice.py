"""A driver of coroutines fetches data sets into a cache; each fetch locks the cache's folder by a file, with the filelock package, and looks
again.

Once a fetch finds that its tokenizer is missing and has that fetched too while it keeps the lock: the second one looks again and again for the
lock of the first, which awaits it. In the twin the lock is given back before, and a fetch takes long; its program beside sends bytes all the
time.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time

import filelock
import kit


def hub() -> None:
    kit.mark("hub")
    for line in sys.stdin:
        parts = 56 if kit.is_late(int(line)) and int(line) % 3 == 0 else random.randint(1, 4)
        for _ in range(parts):
            time.sleep(0.5)
            print("part", flush=True)
        print("end", flush=True)


async def main() -> None:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, __file__, "hub", stdin=pipe, stdout=pipe)
    assert child.stdin is not None and child.stdout is not None
    asked, output = child.stdin, child.stdout

    async def fetch(number: int, needs: int | None = None) -> None:
        async with filelock.AsyncFileLock(kit.folder() / "cache.lock", poll_interval=0.1):
            asked.write(f"{number}\n".encode())
            while (await output.readline()).strip() != b"end":
                pass
            if needs is not None and kit.differs(number):
                await asyncio.create_task(fetch(needs))
                needs = None
        if needs is not None:
            await fetch(needs)

    for number in range(1, 10**6):
        await fetch(number, needs=0)
        kit.mark("main")
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "hub":
        hub()
    else:
        kit.begin()
        asyncio.run(main())
