"""Each step of a rollout is a loop of its own; a thread of it reads what an engine prints and wakes the loop by a pair of sockets for each
token.

The step ends with the last token that it wants, and no longer reads the pair; then the loop waits for its thread. Once the engine prints many
more: the pair is full, and the thread waits for somebody to read it. In the twin the engine keeps to what was asked and takes long.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time

import kit

TOKENS = 20


def engine() -> None:
    kit.mark("engine")
    for line in sys.stdin:
        number = int(line)
        for token in range(TOKENS * 200 if kit.differs(number) else TOKENS):
            if kit.is_late(number) and number % 3 == 0 and token == 5:
                time.sleep(kit.LONG_S)
            print(token, flush=True)
        print("end", flush=True)


async def step(program: subprocess.Popen[str], number: int) -> None:
    loop = asyncio.get_running_loop()
    woken, waking = socket.socketpair()
    woken.setblocking(False)
    waking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    assert program.stdin is not None and program.stdout is not None
    output = program.stdout

    def read() -> None:
        while output.readline().strip() != "end":
            waking.send(b"token" * 20)

    enough = loop.create_future()
    count = 0

    def on_token() -> None:
        nonlocal count
        count += woken.recv(65536).count(b"token") // 20
        if count >= TOKENS and not enough.done():
            enough.set_result(None)

    loop.add_reader(woken, on_token)
    program.stdin.write(f"{number}\n")
    program.stdin.flush()
    reading = loop.run_in_executor(None, read)
    await enough
    loop.remove_reader(woken)
    kit.mark("main")
    if not kit.differs(number):
        await reading


def main() -> None:
    program = subprocess.Popen([sys.executable, __file__, "engine"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for number in range(1, 10**6):
        kit.work(0.3)
        asyncio.run(step(program, number))
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "engine":
        engine()
    else:
        kit.begin()
        main()
