"""A driver of coroutines has one condition of asyncio: players wait there for prompts, a publisher waits there until enough episodes are played.

Who adds prompts wakes one of those that wait. Once this is the publisher, who finds too few episodes and waits again, and no player hears of the
prompts. In the twin all are woken, and a play takes long now and then. A recorder is idle.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

import kit

prompts: list[int] = []
played = 0


async def player(condition: asyncio.Condition) -> None:
    global played
    while True:
        async with condition:
            while not prompts:
                await condition.wait()
            number = prompts.pop()
        await asyncio.sleep(kit.LONG_S if kit.is_late(number) and number % 2 else kit.pause() * 0.3)
        async with condition:
            played += 1
            condition.notify_all()


async def publisher(condition: asyncio.Condition) -> None:
    for number in range(1, 10**6):
        async with condition:
            await condition.wait_for(lambda n=number: played >= n)
        kit.step(number)


async def main() -> None:
    condition = asyncio.Condition()
    players = [asyncio.create_task(player(condition))]
    publishes = asyncio.create_task(publisher(condition))
    for number in range(1, 10**6):
        differs = kit.differs(number)
        while played < number - 1 or (differs and played < number - 1):
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
        if differs:
            break
        async with condition:
            prompts.append(number)
            condition.notify_all()
    players[0].cancel()  # made anew behind the publisher, so that it waits second
    await asyncio.sleep(0.1)
    again = asyncio.create_task(player(condition))
    await asyncio.sleep(0.3)
    async with condition:
        prompts.append(number)
        condition.notify(1)
    kit.mark("main")
    await asyncio.gather(publishes, again)


if __name__ == "__main__":
    if sys.argv[1] == "recorder":
        kit.mark("recorder")
        sys.stdin.read()
    else:
        kit.begin()
        recorder = subprocess.Popen([sys.executable, __file__, "recorder"], stdin=subprocess.PIPE)
        kit.until_there("recorder")
        asyncio.run(main())
