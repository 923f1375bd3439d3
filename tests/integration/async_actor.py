"""An async actor of a real Ray whose calls wait for things of five kinds; and one whose event loop is blocked: ``async_actor.py FOLDER``."""

import asyncio
import json
import os
import sys
import time

import ray


@ray.remote(num_cpus=0)
def endless():
    time.sleep(3600)


@ray.remote(num_cpus=0)
class Agent:
    def __init__(self):
        self.event, self.permits, self.queue = asyncio.Event(), asyncio.Semaphore(0), asyncio.Queue()

    async def pid(self):
        return os.getpid()

    async def on_event(self):
        await self.event.wait()

    async def on_permit(self):
        async with self.permits:
            pass

    async def on_ref(self, refs):
        await refs[0]

    async def on_both(self):
        await asyncio.gather(self.on_event(), self.on_permit())

    async def on_queue(self):
        await asyncio.wait_for(self.queue.get(), 3600)

    async def blocks(self, path):
        await asyncio.sleep(0)
        with open(path, "w"):
            pass
        time.sleep(3600)


def main():
    ray.init(num_cpus=2, include_dashboard=False, _temp_dir=sys.argv[1], log_to_driver=False)
    agent, blocked = Agent.remote(), Agent.remote()
    pids = ray.get([agent.pid.remote(), blocked.pid.remote()])
    ref, path = endless.remote(), sys.argv[1] + "/blocked"
    keep = [agent.on_event.remote(), agent.on_permit.remote(), agent.on_ref.remote([ref]), agent.on_both.remote(), agent.on_queue.remote()]
    keep += [blocked.on_event.remote(), blocked.blocks.remote(path)]
    while not os.path.exists(path):
        time.sleep(0.05)
    time.sleep(0.5)  # calls that are under way
    print(json.dumps({"pid": pids[0], "blocked": pids[1], "ref": ref.hex()}), flush=True)
    sys.stdin.read()
    del keep
    ray.shutdown()


if __name__ == "__main__":
    main()
