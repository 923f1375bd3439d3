"""An engine of coroutines answers prompts in its threads; before new weights a trainer asks every two seconds how many it still has.

One request whose client has gone away is never counted out. In the twin one answer takes long, in one call.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import time
from multiprocessing.connection import Connection, wait

import kit

INFLIGHT = 0


async def generate(step: int, number: int) -> str:
    global INFLIGHT
    INFLIGHT += 1
    long = kit.is_late(step) and number == 1
    await asyncio.get_running_loop().run_in_executor(None, kit.in_c, kit.LONG_S if long else 0.2)
    if number == 1 and kit.differs(step):
        kit.mark("engine")
        raise ConnectionResetError("the client has gone away")
    INFLIGHT -= 1
    return "tokens"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        what, *numbers = (await reader.readline()).decode().split()
        said = await generate(*map(int, numbers)) if what == "generate" else str(INFLIGHT)
        writer.write(said.encode() + b"\n")
        await writer.drain()
    except ConnectionResetError:
        pass
    finally:
        writer.close()


async def engine(path: str) -> None:
    kit.mark("engine")
    async with await asyncio.start_unix_server(answer, path) as server:
        await server.serve_forever()


def serve(path: str) -> None:
    asyncio.run(engine(path))


def asked(path: str, line: str) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        client.sendall(line.encode() + b"\n")
        return client.makefile().readline()


def roll_out(number: int, path: str, orders: Connection) -> None:
    while True:
        step = orders.recv()
        kit.mark(f"rollout{number}")
        orders.send(asked(path, f"generate {step} {number}"))


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    where = str(kit.folder() / "engine")
    spawn.Process(target=serve, args=(where,), daemon=True).start()
    kit.until_there("engine")
    time.sleep(1)
    rollouts = []
    for n in range(2):
        ours, theirs = spawn.Pipe()
        spawn.Process(target=roll_out, args=(n, where, theirs), daemon=True).start()
        theirs.close()
        rollouts.append(ours)
    for step in range(1, 10**6):
        for rollout in rollouts:
            rollout.send(step)
        wait(rollouts)
        while int(asked(where, "inflight") or 0):
            time.sleep(2)
        for rollout in rollouts:
            rollout.recv()
        kit.work(0.2)
        kit.step(step)
