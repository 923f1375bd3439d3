"""Two tasks await each other.

RRD201
wait for each other:
a at a (
b at b (
"""

import asyncio

from ready import soon

ts = {}


async def a():
    await asyncio.sleep(0.01)
    await ts["b"]


async def b():
    await asyncio.sleep(0.01)
    await ts["a"]


async def main():
    ts["a"] = asyncio.create_task(a(), name="a")
    ts["b"] = asyncio.create_task(b(), name="b")
    soon()
    await asyncio.Event().wait()


asyncio.run(main())
