"""Episodes await an event that nobody sets.

RRD201
5 of 6 coroutines
wait at episode (event_never.py:
Event unset; 1 more
"""

import asyncio

from ready import soon


async def episode(event):
    await event.wait()


async def main():
    event = asyncio.Event()
    soon()
    await asyncio.gather(*(episode(event) for _ in range(5)))


asyncio.run(main())
