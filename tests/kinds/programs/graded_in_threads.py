"""Coroutines hand answers to threads, each thread hands its answer to a pool of processes and waits for the grade."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import kit

NOBODY = socket.create_server(("127.0.0.1", 0))


def grade(step: int, n: int, address: tuple[str, int]) -> int:
    if n == 2 and kit.differs(step):
        kit.mark("grader")
        with socket.create_connection(address) as service:
            service.sendall(b"grade\n")
            service.recv(16)
    kit.work(0.3)
    return n


def grade_in(pool: ProcessPoolExecutor, step: int, n: int) -> int:
    return pool.submit(grade, step, n, NOBODY.getsockname()).result()


async def rollouts() -> None:
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(3) as pool, ThreadPoolExecutor(3) as threads:
        for step in range(1, 10**6):
            kit.mark("main")
            await asyncio.gather(*(loop.run_in_executor(threads, grade_in, pool, step, n) for n in range(3)))
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    asyncio.run(rollouts())
