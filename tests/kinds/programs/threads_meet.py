"""Twelve small jobs run in the loop's own threads; the last of them collects what the others have put aside."""

from __future__ import annotations

import asyncio
import threading

import kit

PARTS = 12


class Meeting:
    def __init__(self, step: int) -> None:
        self.step = step
        self.there = 0
        self.changed = threading.Condition()

    def bring(self, part: int) -> None:
        kit.work(0.2)
        with self.changed:
            self.there += 1
            self.changed.notify_all()
            if kit.differs(self.step):
                kit.mark("main")
                self.changed.wait_for(lambda: self.there == PARTS)


async def run() -> None:
    for step in range(1, 10**6):
        meeting = Meeting(step)
        await asyncio.gather(*(asyncio.to_thread(meeting.bring, part) for part in range(PARTS)))
        kit.step(step)


if __name__ == "__main__":
    kit.begin()
    asyncio.run(run())
