"""The worker of a queue has died; what it took is never marked as done.

RRD201
waits at main (queue_join.py:
Queue.join 3 unfinished
"""

import asyncio

from ready import soon


async def handle(queue):
    while True:
        item = await queue.get()
        if item == 2:
            raise RuntimeError("worker dies")
        queue.task_done()


async def main():
    queue = asyncio.Queue()
    for i in range(5):
        queue.put_nowait(i)
    keep = asyncio.create_task(handle(queue))
    soon()
    await queue.join()
    return keep


asyncio.run(main())
