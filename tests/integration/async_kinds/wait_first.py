"""asyncio.wait for the first of several that never end.

RRD201
4 of 5 coroutines
wait at a (
Event unset
"""

import asyncio

from ready import soon


async def a():
    await asyncio.Event().wait()


async def main():
    soon()
    ts = [asyncio.create_task(a()) for _ in range(4)]
    await asyncio.wait(ts, return_when=asyncio.FIRST_COMPLETED)


asyncio.run(main())
