"""A trainer's output is captured: whoever prints has a lock and waits until a loop, in a thread of its own, has sent the line to a recorder.

Once the loop itself prints that the recorder is slow: it waits for the lock, whose owner waits for the loop. In the twin it does not print, and
the recorder is slow.
"""

from __future__ import annotations

import asyncio
import sys
import threading

import kit


class Captured:
    """Takes the place of stdout."""

    def __init__(self, loop: asyncio.AbstractEventLoop, port: int) -> None:
        self.loop, self.port, self.lock = loop, port, threading.Lock()
        self.lines = 0

    def write(self, text: str) -> int:
        with self.lock:
            self.lines += 1
            asyncio.run_coroutine_threadsafe(self.send(text, self.lines), self.loop).result()
        return len(text)

    def flush(self) -> None:
        pass

    async def send(self, text: str, number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(text.encode() + b"\n")
        if kit.differs(number // 2):
            print("the recorder is slow")
        await reader.readline()
        writer.close()


async def record() -> None:
    lines = 0

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal lines
        lines += 1
        await reader.readline()
        await asyncio.sleep(kit.LONG_S if kit.is_late(lines // 2) and lines % 4 == 0 else kit.pause() * 0.2)
        writer.write(b"ok\n")

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    kit.mark("recorder", port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


def main() -> None:
    import subprocess

    subprocess.Popen([sys.executable, __file__, "record"])
    port = kit.until_there("recorder")["port"]
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="sender", daemon=True).start()
    sys.stdout = Captured(loop, port)  # type: ignore[assignment]
    for step in range(1, 10**6):
        kit.work(0.3)
        print(f"step {step}")
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "record":
        asyncio.run(record())
    else:
        kit.begin()
        main()
