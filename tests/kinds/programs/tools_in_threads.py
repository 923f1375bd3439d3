"""Coroutines of agents call a tool by requests, in the loop's threads; the tool is a program of its own."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys

import kit
import requests


def serve() -> None:
    """One call after another."""
    listener = socket.create_server(("127.0.0.1", 0))
    kit.mark("tool", port=listener.getsockname()[1])
    kept = []
    while True:
        connection, _ = listener.accept()
        asked = connection.recv(4096)
        if b"/differs" in asked:
            kept.append(connection)
            continue
        kit.work(0.2)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        connection.close()


def call_tool(port: int, path: str) -> str:
    return requests.get(f"http://127.0.0.1:{port}/{path}").text


async def agent(n: int, port: int) -> None:
    for step in range(1, 10**6):
        await asyncio.to_thread(call_tool, port, "differs" if n == 1 and kit.differs(step) else "run")
        if n == 0:
            kit.step(step)
        if kit.differs(step):
            kit.mark("main")
            return
        await asyncio.sleep(kit.pause() * 0.3)


async def rollouts(port: int) -> None:
    await asyncio.gather(*(agent(n, port) for n in range(3)))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        subprocess.Popen([sys.executable, __file__, "serve"])
        asyncio.run(rollouts(kit.until_there("tool")["port"]))
