"""Jobs of one cluster take turns at a card through a detached actor; a job ends without giving its turn back, and the next one waits for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import kit
import ray


@ray.remote(num_cpus=0)
class Turns:
    def __init__(self) -> None:
        kit.mark("turns")
        self.lock = asyncio.Lock()

    async def take(self) -> None:
        await self.lock.acquire()

    async def give(self) -> None:
        self.lock.release()


def evaluate(address: str, gives: bool) -> None:
    ray.init(address=address, log_to_driver=False)
    turns = ray.get_actor("turns", namespace="kit")
    ray.get(turns.take.remote())
    kit.work(0.2)
    if gives:
        ray.get(turns.give.remote())


if __name__ == "__main__":
    if "evaluate" in sys.argv:
        evaluate(sys.argv[-2], sys.argv[-1] == "gives")
        sys.exit()
    kit.begin()
    info = ray.init(
        num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20, namespace="kit"
    )
    turns = Turns.options(name="turns", lifetime="detached").remote()
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        gives = "keeps" if kit.differs(step) else "gives"
        subprocess.run([sys.executable, __file__, "evaluate", info["gcs_address"], gives], check=False)
        kit.mark("main")
        ray.get(turns.take.remote())
        kit.work(0.5)
        ray.get(turns.give.remote())
        kit.step(step)
