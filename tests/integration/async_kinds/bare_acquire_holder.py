"""The holder of a lock took it by acquire(): it is not known, and told as it waits.

RRD201
4 of 6 coroutines
wait at take (
Lock that is locked
waits at refill (
"""

import asyncio

from ready import soon


async def refill(lock):
    await lock.acquire()
    try:
        await asyncio.Event().wait()
    finally:
        lock.release()


async def take(lock):
    await lock.acquire()


async def main():
    lock = asyncio.Lock()
    soon()
    await asyncio.gather(refill(lock), *(take(lock) for _ in range(4)))


asyncio.run(main())
