"""A generator and a judge serve as coroutines, the first asks the second. A trainer pauses both, as soon as nothing runs there, and renews them."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import kit


async def ask(port: int, text: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{text}\n".encode())
    answer = await reader.readline()
    writer.close()
    return answer.decode().strip()


class Server:
    def __init__(self, judge: int | None) -> None:
        self.judge = judge
        self.running = 0
        self.resumed = asyncio.Event()
        self.resumed.set()
        self.drained = asyncio.Condition()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        order = (await reader.readline()).decode().strip()
        await getattr(self, order)()
        writer.write(b"done\n")
        await writer.drain()
        writer.close()

    async def generate(self) -> None:
        await self.resumed.wait()
        self.running += 1
        await asyncio.sleep(kit.pause())
        if self.judge:
            await ask(self.judge, "generate")
        self.running -= 1
        async with self.drained:
            self.drained.notify_all()

    async def pause(self) -> None:
        self.resumed.clear()
        async with self.drained:
            await self.drained.wait_for(lambda: self.running == 0)

    async def renew(self) -> None:
        await asyncio.sleep(kit.pause() * 0.3)
        self.resumed.set()


async def serve(name: str, port: int, judge: int | None) -> None:
    server = await asyncio.start_server(Server(judge).handle, "127.0.0.1", port)
    kit.mark(name)
    await server.serve_forever()


async def train(generator: int, judge: int) -> None:
    for step in range(1, 10**6):
        playing = [asyncio.create_task(ask(generator, "generate")) for _ in range(3)]
        await asyncio.sleep(0.02 if kit.differs(step) else kit.pause() * 0.3)
        order = (judge, generator) if kit.differs(step) else (generator, judge)
        for port in order:
            await ask(port, "pause")
        await asyncio.gather(*(ask(port, "renew") for port in order))
        await asyncio.gather(*playing)
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] in ("generator", "judge"):
        asyncio.run(serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) or None))
    else:
        kit.begin()
        ports = kit.free_port(), kit.free_port()
        subprocess.Popen([sys.executable, __file__, "generator", str(ports[0]), str(ports[1])])
        subprocess.Popen([sys.executable, __file__, "judge", str(ports[1]), "0"])
        for name in ("generator", "judge"):
            kit.until_there(name)
        asyncio.run(train(*ports))
