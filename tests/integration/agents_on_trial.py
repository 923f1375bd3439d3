"""Agents for ``rollout try``: a good one, and one for each thing that goes wrong. Standard library only."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

KEPT: list[Any] = []


async def ask(base_url: str, *, close: bool = True) -> str:
    """One chat completion over a connection of its own."""
    url = urlsplit(base_url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    body = json.dumps({"model": "any", "messages": [{"role": "user", "content": "hello"}]}).encode()
    writer.write(b"POST %s/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (url.path.encode(), len(body)) + body)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    answer = json.loads(await reader.readexactly(length))
    if close:
        writer.close()
    else:
        KEPT.append((reader, writer))
    if b" 200 " not in head:
        raise RuntimeError(f"the engine said {head.split()[1].decode()}")
    return str(answer["choices"][0]["message"]["content"])


class Good:
    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        return float(len(await ask(extra_kwargs["base_url"])))


class BlocksLoop:
    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        await ask(extra_kwargs["base_url"])
        self.run_code()
        return 1.0

    def run_code(self) -> None:
        time.sleep(1.2)


class WaitsShortly:
    """Each of its synchronous calls is too short to notice."""

    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        for _ in range(5):
            self.look_up()
            await asyncio.sleep(0)
        return 1.0

    def look_up(self) -> None:
        time.sleep(0.05)


class LeaksConnections:
    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        await ask(extra_kwargs["base_url"], close=False)
        return 1.0


class LeaksTasks:
    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        KEPT.append(asyncio.create_task(self.watch()))
        await ask(extra_kwargs["base_url"])
        return 1.0

    async def watch(self) -> None:
        await asyncio.Event().wait()


class SilentTool:
    def __init__(self) -> None:
        self.tool = socket.create_server(("127.0.0.1", 0), backlog=64)

    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        await ask(extra_kwargs["base_url"])
        return await self.call_tool()

    async def call_tool(self) -> float:
        reader, writer = await asyncio.open_connection(*self.tool.getsockname())
        writer.write(b"1 + 1\n")
        if "READY" in os.environ:
            Path(os.environ["READY"]).touch()
        return float(await reader.readline())


class SmallSemaphore:
    def __init__(self, permits: int = 2) -> None:
        self.limit = asyncio.Semaphore(permits)

    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        async with self.limit:
            return float(len(await ask(extra_kwargs["base_url"])))


class TakesSemaphoreTwice(SmallSemaphore):
    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        async with self.limit:
            await asyncio.sleep(0.05)
            return await super().run(data, **extra_kwargs)


class Raises:
    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        text = await ask(extra_kwargs["base_url"])
        return {"known": 1.0}[text + str(time.monotonic())]


class ReturnsText:
    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> str:
        return await ask(extra_kwargs["base_url"])


class ReturnsInt:
    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> int:
        return len(await ask(extra_kwargs["base_url"]))


class NotAsync:
    def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        return 1.0


class NeedsArgument:
    def __init__(self, path: str) -> None:
        self.path = path

    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        return float(len(self.path))


class SwallowsCancellation:
    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                print("I go on")


class ReadsRows:
    """Rewards that differ from prompt to prompt, never within a group."""

    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        await ask(extra_kwargs["base_url"])
        return float(data["worth"])


class Dies:
    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        print("out of luck", flush=True)
        os._exit(7)


class SynchronousAgent:
    """As Agent-Lightning's, called by its runner."""

    def rollout(self, task: dict[str, Any], resources: dict[str, Any], rollout: Any) -> float:
        assert resources["main_llm"].endpoint.startswith("http://127.0.0.1:")
        assert rollout.rollout_id
        threading.Event().wait(0.05)
        return 0.5


class AsynchronousAgent:
    async def rollout_async(self, task: dict[str, Any], resources: dict[str, Any], rollout: Any) -> float:
        return float(len(await ask(resources["main_llm"].endpoint)))


class SilentSynchronousTool:
    def __init__(self) -> None:
        self.tool = socket.create_server(("127.0.0.1", 0), backlog=64)

    def rollout(self, task: dict[str, Any], resources: dict[str, Any], rollout: Any) -> float:
        with socket.create_connection(self.tool.getsockname()) as connection:
            return float(connection.recv(10))
