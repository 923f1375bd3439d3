"""The task that should complete a future has died.

RRD201
1 of 1 coroutines
waits at fetch (
for Future
"""

import asyncio

from ready import soon


async def produce(future):
    await asyncio.sleep(0.05)
    raise RuntimeError("tool failed")
    future.set_result(1)


async def fetch(future):
    return await future


async def main():
    future = asyncio.get_running_loop().create_future()
    soon()
    keep = asyncio.create_task(produce(future))
    await fetch(future)
    return keep


asyncio.run(main())
