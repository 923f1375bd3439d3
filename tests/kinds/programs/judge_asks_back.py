"""An engine is a Ray actor of coroutines that also answers over HTTP; a judge, an actor too, asks it there before it scores what it made."""

from __future__ import annotations

import asyncio
from typing import Any

import kit
import ray


@ray.remote(num_cpus=0)
class Judge:
    def __init__(self, address: str) -> None:
        kit.mark("judge")
        self.address = address

    def score(self, text: str) -> int:
        import requests

        return len(requests.get(f"{self.address}/judge", params={"text": text}).text)


@ray.remote(num_cpus=0)
class Engine:
    async def start(self) -> str:
        from aiohttp import web

        kit.mark("engine")
        app = web.Application()
        app.add_routes([web.get("/judge", self.judge)])
        runner = web.AppRunner(app)
        await runner.setup()
        port = kit.free_port()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        return f"http://127.0.0.1:{port}"

    async def judge(self, request: Any) -> Any:
        from aiohttp import web

        await asyncio.sleep(kit.pause() * 0.5)
        return web.Response(text=request.query["text"])

    async def generate(self, step: int, judge: Any) -> int:
        await asyncio.sleep(kit.pause() * 0.5)
        if kit.differs(step):
            kit.mark("engine")
            return int(ray.get(judge.score.remote("answer")))
        return int(await judge.score.remote("answer"))


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    engine = Engine.remote()
    judge = Judge.remote(ray.get(engine.start.remote()))
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        ray.get([engine.generate.remote(step, judge) for _ in range(2)])
        kit.step(step)
