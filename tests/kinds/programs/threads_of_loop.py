"""Rewards are computed beside the event loop, in its own threads; each asks the tokenizer, which runs there as well."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import kit

TOKENIZER = ThreadPoolExecutor(1, thread_name_prefix="tokenizer")


def count_tokens(answer: int) -> int:
    kit.work(0.2)
    return answer


async def tokens(answer: int, step: int) -> int:
    if kit.differs(step):
        return await asyncio.to_thread(count_tokens, answer)
    return await asyncio.get_running_loop().run_in_executor(TOKENIZER, count_tokens, answer)


def reward(answer: int, step: int, loop: asyncio.AbstractEventLoop) -> float:
    kit.work(0.2)
    kit.mark("main")
    return float(asyncio.run_coroutine_threadsafe(tokens(answer, step), loop).result())


async def score_answers() -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(4))
    for step in range(1, 10**6):
        await asyncio.gather(*(asyncio.to_thread(reward, answer, step, loop) for answer in range(8)))
        kit.step(step)


if __name__ == "__main__":
    kit.begin()
    asyncio.run(score_answers())
