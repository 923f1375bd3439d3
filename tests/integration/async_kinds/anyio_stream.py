"""A thread of anyio that sleeps, and a stream that nobody writes to.

RRD201
a thread of an executor
MemoryObjectReceiveStream.receive empty
"""

import time

import anyio
from ready import soon


async def read(stream):
    async for _ in stream:
        pass


async def main():
    _sender, stream = anyio.create_memory_object_stream(1)
    async with anyio.create_task_group() as group:
        soon()
        group.start_soon(read, stream)
        group.start_soon(anyio.to_thread.run_sync, time.sleep, 1000)


anyio.run(main)
