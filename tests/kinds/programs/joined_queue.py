"""Graders take answers from an asyncio queue, and a step ends when the queue is joined; one that fails says of its answer not that it is done."""

from __future__ import annotations

import asyncio

import kit


async def grade(answers: asyncio.Queue[tuple[int, int]]) -> None:
    while True:
        step, n = await answers.get()
        try:
            await asyncio.sleep(kit.pause() * 0.2)
            if n == 5 and kit.differs(step):
                raise ValueError("no number in the answer")
        except ValueError:
            continue
        answers.task_done()


async def main() -> None:
    answers: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
    graders = [asyncio.create_task(grade(answers)) for _ in range(3)]
    for step in range(1, 10**6):
        for n in range(9):
            answers.put_nowait((step, n))
        kit.mark("main")
        await answers.join()
        kit.step(step)
    await asyncio.gather(*graders)


if __name__ == "__main__":
    kit.begin()
    asyncio.run(main())
