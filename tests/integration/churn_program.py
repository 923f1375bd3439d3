"""Tasks that come and go beside some that stand: ``churn_program.py TRUTH``. Writes which chains can exist, and which of them stand.

Standard library only, any CPython from 3.10 on.
"""

import asyncio
import json
import os
import random
import sys

STUCK, SHORT = 20, 120


def line_of(function, offset):
    return function.__code__.co_firstlineno + offset


def at(function, *offsets):
    return [line_of(function, offset) for offset in (0, *offsets)]


async def leaf(seconds):
    await asyncio.sleep(seconds)


async def middle(seconds):
    await leaf(seconds)


async def outer(seconds):
    await middle(seconds)


async def stuck(event):
    await event.wait()


async def held(lock, ready):
    async with lock:
        ready.set()
        await asyncio.get_running_loop().create_future()


async def wants(lock):
    async with lock:
        raise AssertionError("nobody releases it")


async def short_lived():
    while True:
        choice = random.random()
        if choice < 0.3:
            await outer(random.random() / 500)
        elif choice < 0.6:
            await middle(random.random() / 500)
        else:
            await asyncio.gather(leaf(0), leaf(random.random() / 900))
        asyncio.current_task().set_name(f"round {random.randrange(1000)}")
        if choice > 0.7:
            return


async def breeds():
    running = set()
    while True:
        while len(running) < SHORT:
            running.add(asyncio.create_task(short_lived(), name="new"))
        _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)


async def main(path):
    event, lock, ready = asyncio.Event(), asyncio.Lock(), asyncio.Event()
    keep = [asyncio.create_task(stuck(event), name=f"stuck {i}") for i in range(STUCK)]
    keep.append(asyncio.create_task(held(lock, ready), name="holds"))
    await ready.wait()
    keep.append(asyncio.create_task(wants(lock), name="wants"))
    keep.append(asyncio.create_task(breeds(), name="breeds"))
    await asyncio.sleep(0.2)
    stands = {f"stuck {i}": ["stuck", line_of(stuck, 1)] for i in range(STUCK)}
    stands |= {"holds": ["held", line_of(held, 3)], "wants": ["wants", line_of(wants, 1)]}
    # each function's lines where it may be suspended (one that has not begun stands at its first), and whom it may await
    own = {
        "leaf": [at(leaf, 1), ["sleep", "__sleep0"]],
        "middle": [at(middle, 1), ["leaf"]],
        "outer": [at(outer, 1), ["middle"]],
        "short_lived": [at(short_lived, 4, 6, 8), ["outer", "middle"]],
        "breeds": [at(breeds, 5), ["wait"]],
        "stuck": [at(stuck, 1), ["Event.wait"]],
        "held": [at(held, 3), []],
        "wants": [at(wants, 1), ["_ContextManagerMixin.__aenter__", "Lock.__aenter__"]],
        "main": [at(main, *range(60)), []],
    }
    with open(path + ".part", "w") as f:
        json.dump({"stands": stands, "own": own}, f)
    os.rename(path + ".part", path)
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
