"""Players, tasks of anyio, hand episodes on by clones of one memory stream; the trainer reads until all clones are closed, which ends the step.

A player that tries an episode again takes one more clone for it and forgets that one: the step never ends. A task beside writes a heartbeat. In the
twin it closes that clone, too, and an episode takes long now and then.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anyio
import kit

kept: list[Any] = []


async def play(player: int, number: int, episodes: Any) -> None:
    async with episodes:
        for n in range(3):
            await anyio.sleep(kit.pause() * 0.2)
            if kit.is_late(number) and player == n == 1:
                await anyio.sleep(kit.LONG_S)
            await episodes.send((player, n))
            if player == 2 and n == 1:
                again = episodes.clone()
                await again.send((player, n))
                if kit.differs(number):
                    kept.append(again)
                else:
                    again.close()


async def beat() -> None:
    while True:
        (kit.folder() / "heartbeat").write_text(str(anyio.current_time()))
        await anyio.sleep(2)


async def main() -> None:
    async with anyio.create_task_group() as beside:
        beside.start_soon(beat)
        for number in range(1, 10**6):
            kit.mark("main")
            send, receive = anyio.create_memory_object_stream[Any](2)
            async with anyio.create_task_group() as players:
                async with send:
                    for player in range(3):
                        players.start_soon(play, player, number, send.clone())
                async with receive:
                    found = [episode async for episode in receive]
            assert len(found) == 10
            kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "recorder":
        kit.mark("recorder")
        sys.stdin.read()
    else:
        kit.begin()
        recorder = subprocess.Popen([sys.executable, __file__, "recorder"], stdin=subprocess.PIPE)
        kit.until_there("recorder")
        anyio.run(main)
