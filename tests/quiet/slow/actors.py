"""Runs of Ray whose calls take long."""

from __future__ import annotations

import asyncio
import os
import queue
import random
import subprocess
import sys
import threading
import time
import urllib.request

from parts import START, burn, port, start_ray


def curriculum():
    """The driver pauses for long between two rounds; actors have a thread that looks into a queue."""
    ray = start_ray()

    @ray.remote(num_cpus=0)
    class A:
        def __init__(self):
            self.q = queue.Queue()
            threading.Thread(target=self.bg, daemon=True).start()

        def bg(self):
            while True:
                try:
                    self.q.get(timeout=2)
                except queue.Empty:
                    pass

        def step(self):
            time.sleep(0.3)

    a = [A.remote() for _ in range(3)]
    while True:
        ray.get([x.step.remote() for x in a])
        time.sleep(24)


def teacher():
    """An asynchronous actor generates in a thread of its loop; two others wait for it."""
    ray = start_ray()

    @ray.remote(num_cpus=0)
    class Teacher:
        async def generate(self, n):
            loop = asyncio.get_running_loop()
            for _ in range(8 if n % 2 else 1):
                await loop.run_in_executor(None, time.sleep, 3)
            return n

    @ray.remote(num_cpus=0)
    class Student:
        def __init__(self, t):
            self.t = t

        def learn(self, n):
            return ray.get(self.t.generate.remote(n))

    t = Teacher.remote()
    s = [Student.remote(t) for _ in range(2)]
    n = 0
    while True:
        n += 1
        ray.get([x.learn.remote(n + i) for i, x in enumerate(s)])


def one_slow_rollout():
    """One rollout of three becomes slow; the driver asks every three seconds who has ended."""
    ray = start_ray()

    @ray.remote(num_cpus=0)
    class R:
        def __init__(self, i):
            self.i = i
            self.n = 0

        def play(self):
            self.n += 1
            if self.i == 0 and self.n > 4:
                for _ in range(9):
                    time.sleep(2.5)
            return self.n

    @ray.remote(num_cpus=0)
    class B:
        def __init__(self):
            self.items = []

        def put(self, x):
            self.items.append(x)

    r = [R.remote(i) for i in range(3)]
    b = B.remote()
    while True:
        pending = [x.play.remote() for x in r]
        while pending:
            done, pending = ray.wait(pending, timeout=3)
            ray.get([b.put.remote(d) for d in done])


def judge_timeouts():
    """A judge is often slower than the time-out of those who ask it, who try again after growing pauses."""
    os.environ["P"] = str(port())
    subprocess.Popen([sys.executable, START, "judge"])
    time.sleep(1)
    ray = start_ray()

    @ray.remote(num_cpus=0)
    class Reward:
        def score(self, n):
            back = 1.0
            while True:
                try:
                    return urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{os.environ['P']}/", data=b"1"), timeout=12).read()
                except OSError:
                    time.sleep(back)
                    back = min(back * 2, 20)

    w = [Reward.remote() for _ in range(2)]
    while True:
        ray.get([x.score.remote(i) for i, x in enumerate(w)])


def batcher():
    """An engine waits for a full batch, or for 25 seconds."""
    ray = start_ray()

    @ray.remote(num_cpus=0, max_concurrency=50)
    class Engine:
        def __init__(self):
            self.queue = asyncio.Queue()
            self.task = None

        async def run(self):
            while True:
                batch = [await self.queue.get()]
                end = asyncio.get_running_loop().time() + 25
                while len(batch) < 4:
                    try:
                        batch.append(await asyncio.wait_for(self.queue.get(), end - asyncio.get_running_loop().time()))
                    except asyncio.TimeoutError:
                        break
                await asyncio.sleep(2)
                for f in batch:
                    f.set_result(1)

        async def generate(self):
            if self.task is None:
                self.task = asyncio.create_task(self.run())
            f = asyncio.get_running_loop().create_future()
            await self.queue.put(f)
            return await f

    @ray.remote(num_cpus=0)
    class Rollout:
        def __init__(self, e):
            self.e = e

        def play(self):
            ray.get(self.e.generate.remote())
            time.sleep(random.uniform(1, 3))
            return ray.get(self.e.generate.remote())

    e = Engine.remote()
    r = [Rollout.remote(e) for _ in range(3)]
    while True:
        ray.get([x.play.remote() for x in r])


def cold_start():
    """An engine starts up for minutes without a word; whoever has started it tries to reach it."""
    os.environ["P"] = str(port())
    ray = start_ray()

    @ray.remote(num_cpus=0)
    class Server:
        def launch(self):
            self.child = subprocess.Popen([sys.executable, START, "engine"])
            while True:
                try:
                    return urllib.request.urlopen(f"http://127.0.0.1:{os.environ['P']}/health", timeout=5).status
                except OSError:
                    time.sleep(5)

    @ray.remote(num_cpus=0)
    class Trainer:
        def ready(self):
            return 1

    s, t = (Server.remote(), Trainer.remote())
    ray.get(t.ready.remote())
    ray.get(s.launch.remote())
    time.sleep(10**6)


def long_queue():
    """An asynchronous actor has far more calls than it runs at once."""
    ray = start_ray()

    @ray.remote(num_cpus=0, max_concurrency=2)
    class Sandbox:
        async def run(self, n):
            p = await asyncio.create_subprocess_exec("sleep", str(random.randint(8, 25)))
            await p.wait()
            return n

    @ray.remote(num_cpus=0)
    class Trainer:
        def update(self):
            time.sleep(1)

    s, t = (Sandbox.remote(), Trainer.remote())
    ray.get(t.update.remote())
    while True:
        ray.get([s.run.remote(i) for i in range(30)])
        ray.get(t.update.remote())


def session():
    """A session that a person drives: all actors are idle."""
    ray = start_ray()

    @ray.remote(num_cpus=0)
    class Actor:
        def step(self, n):
            return n

    a = [Actor.remote() for _ in range(2)]
    ray.get([x.step.remote(1) for x in a])

    async def main():
        inbox = asyncio.Queue()

        async def cells(reader, writer):
            while line := (await reader.readline()):
                await inbox.put((line, writer))

        async def alive():
            while True:
                await asyncio.sleep(3)

        await asyncio.start_server(cells, "127.0.0.1", 0)
        kept = [asyncio.create_task(alive())]
        while kept:
            line, writer = await inbox.get()
            ray.get(a[0].step.remote(1))
            writer.write(line)

    asyncio.run(main())


def many_tasks():
    """There are more tasks of Ray than cores, and each takes long."""
    ray = start_ray()

    @ray.remote(num_cpus=1)
    def shard(n):
        for _ in range(3):
            time.sleep(8)
            burn(100000)
        return n

    while True:
        pending = [shard.remote(n) for n in range(6)]
        while pending:
            _done, pending = ray.wait(pending, timeout=5)


def yields():
    """An actor yields a sample every 15 to 25 seconds."""
    ray = start_ray()

    @ray.remote(num_cpus=0)
    class Sampler:
        def samples(self):
            while True:
                time.sleep(random.uniform(15, 25))
                yield 1

    @ray.remote(num_cpus=0)
    class Learner:
        def learn(self, x):
            time.sleep(0.5)
            return x

    s, learner = (Sampler.remote(), Learner.remote())
    for ref in s.samples.remote():
        ray.get(learner.learn.remote(ref))
