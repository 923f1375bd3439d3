"""A rollout sends prompts to an engine through a proxy that passes on whole lines only, in both directions.

One prompt comes without the end of its line: the proxy keeps it and waits for the rest, the rollout waits for the answer, the engine for a prompt.
"""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
import sys

import kit


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        if kit.is_healthy() and random.random() < 0.15:
            await asyncio.sleep(random.uniform(1, 3.5))
        writer.write(line)
        await writer.drain()
    writer.close()


async def proxy(engine: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", engine)
        await asyncio.gather(pass_on(reader, back), pass_on(there, writer))

    port = kit.free_port()
    server = await asyncio.start_server(connected, "127.0.0.1", port)
    kit.mark("proxy", port=port)
    await server.serve_forever()


def generate() -> None:
    port = kit.free_port()
    with socket.create_server(("127.0.0.1", port)) as listening:
        kit.mark("engine", port=port)
        while True:
            peer, _ = listening.accept()
            with peer, peer.makefile("rwb") as lines:
                for line in lines:
                    kit.work(0.3)
                    lines.write(line)
                    lines.flush()


def play(port: int) -> None:
    kit.mark("rollout")
    with socket.create_connection(("127.0.0.1", port)) as peer, peer.makefile("rwb") as lines:
        for step in range(1, 10**6):
            kit.work(0.3)
            end = "" if kit.differs(step) else "\n"
            lines.write(f"prompt {step}{end}".encode())
            lines.flush()
            lines.readline()
            kit.step(step)


if __name__ == "__main__":
    match sys.argv[1]:
        case "engine":
            generate()
        case "proxy":
            asyncio.run(proxy(int(sys.argv[2])))
        case "rollout":
            play(int(sys.argv[2]))
        case _:
            kit.begin()
            children = [subprocess.Popen([sys.executable, __file__, "engine"])]
            children.append(subprocess.Popen([sys.executable, __file__, "proxy", str(kit.until_there("engine")["port"])]))
            children.append(subprocess.Popen([sys.executable, __file__, "rollout", str(kit.until_there("proxy")["port"])]))
            for child in children:
                child.wait()
