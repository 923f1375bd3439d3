"""Rounds that many take part in: whoever is late sleeps, runs a program, or gathers what the others ask."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import multiprocessing as mp
import os
import random
import selectors
import socket
import subprocess
import sys
import threading
import time

from idioms import started, work
from parts import FOLDER, port, start_ray


def last_of_four():
    "Ray: a server holds pushes back until all four workers have pushed; one of them runs a program of 38 s now and then"
    ray = start_ray()

    @ray.remote(num_cpus=0, max_concurrency=8)
    class Server:
        def __init__(self):
            self.c = threading.Condition()
            self.n = self.round = 0

        def push(self, r):
            with self.c:
                self.n += 1
                if self.n == 4:
                    self.n = 0
                    self.round += 1
                    self.c.notify_all()
                else:
                    want = self.round + 1
                    while self.round < want:
                        self.c.wait()

    @ray.remote(num_cpus=0)
    class Worker:
        def run(self, s, slow):
            for n in itertools.count():
                if slow and n % 3 == 2:
                    subprocess.run([sys.executable, "-c", "import time; time.sleep(38)"])
                else:
                    time.sleep(0.3)
                ray.get(s.push.remote(n))

    s = Server.remote()
    w = [Worker.remote() for _ in range(4)]
    ray.get([x.run.remote(s, i == 1) for i, x in enumerate(w)])


def key_after_export_rank(r, p):
    import torch
    import torch.distributed as d

    torch.set_num_threads(1)
    d.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{p}", rank=int(r), world_size=3)
    s = d.distributed_c10d._get_default_store()
    for n in itertools.count():
        if r == "0":
            for _ in range(7):
                time.sleep(5)
                work(0.1)
            s.set(f"weights/{n}", "1")
        else:
            s.wait([f"weights/{n}"])
        d.barrier()


def key_after_export():
    "gloo: ranks wait for a key that the first one sets after an export of 35 s in naps"
    p = port()
    for x in [started("key_after_export_rank", r, p) for r in range(3)]:
        x.wait()


def jobs_of_programs():
    "workers of coroutines run programs of half a minute, two at a time; main joins the queue; a reporter sleeps a minute"

    async def main():
        q = asyncio.Queue(4)
        permits = asyncio.Semaphore(2)

        async def job():
            async with permits:
                p = await asyncio.create_subprocess_exec(
                    sys.executable, "-c", "import time; [time.sleep(1) for _ in range(30)]", stdout=subprocess.PIPE
                )
                await p.communicate()

        async def worker():
            while True:
                await q.get()
                await job()
                q.task_done()

        async def report():
            while True:
                await asyncio.sleep(60)

        w = [asyncio.create_task(worker()) for _ in range(3)]
        w.append(asyncio.create_task(report()))
        while w:
            for n in range(6):
                await q.put(n)
            await q.join()

    asyncio.run(main())


def value_under_condition_sim(changed, value):
    while True:
        time.sleep(32)
        with changed:
            value.value += 1
            changed.notify_all()


def value_under_condition():
    "a trainer waits at a condition between processes for a value that a simulator raises each 32 s"
    c = mp.get_context("spawn")
    changed, value = c.Condition(), c.Value("i", 0)
    c.Process(target=value_under_condition_sim, args=(changed, value), daemon=True).start()
    seen = 0
    while True:
        with changed:
            while value.value <= seen:
                changed.wait()
        seen = value.value
        work(0.2)


def gathers_requests_server(path):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(8)
    ends = selectors.DefaultSelector()
    ends.register(s, 1)
    asked, last = [], time.monotonic()
    while True:
        for key, _ in ends.select(timeout=5):
            if key.fileobj is s:
                ends.register(s.accept()[0], 1)
            else:
                key.fileobj.recv(100)
                asked.append(key.fileobj)
        if time.monotonic() - last > 36:
            work(0.5)
            for one in asked:
                one.sendall(b"ok")
            asked, last = [], time.monotonic()


def gathers_requests_client(path):
    while not os.path.exists(path):
        time.sleep(0.1)
    time.sleep(0.2)
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    while True:
        s.sendall(b"x")
        s.recv(10)
        time.sleep(0.1)


def gathers_requests():
    "a server of one thread gathers requests over Unix sockets and answers all of them each 36 s"
    path = f"{FOLDER}/sock"
    started("gathers_requests_server", path)
    for x in [started("gathers_requests_client", path) for _ in range(2)]:
        x.wait()


def turns_under_lock():
    "four threads take from one slow generator in turns, under a lock"
    lock = threading.Lock()

    def slow():
        for n in itertools.count():
            time.sleep(random.uniform(12, 22))
            yield n

    it = slow()

    def take():
        while True:
            with lock:
                next(it)
            work(0.1)

    t = [threading.Thread(target=take, name=f"take-{n}") for n in range(4)]
    [x.start() for x in t]
    [x.join() for x in t]


def uploaded_in_pieces_rank(r, p):
    import torch.distributed as d

    d.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{p}", rank=int(r), world_size=2)
    while True:
        if r == "1":
            with open(f"{FOLDER}/pipe", "wb") as f:
                for _ in range(8):
                    f.write(bytes(65536))
                    f.flush()
        d.barrier()


def uploaded_in_pieces():
    "a rank writes a checkpoint into a named pipe, from which an uploader takes a piece in 5 s; the other rank waits at a barrier"
    os.mkfifo(f"{FOLDER}/pipe")
    p = port()
    [started("uploaded_in_pieces_rank", r, p) for r in range(2)]
    while True:
        with open(f"{FOLDER}/pipe", "rb", buffering=0) as f:
            while f.read(65536):
                time.sleep(5)


def saved_under_lock_writer():
    while True:
        with open(f"{FOLDER}/ck", "wb") as f:
            fcntl.lockf(f, fcntl.LOCK_EX)
            for _ in range(30):
                f.write(bytes(300_000))
                f.flush()
                os.fsync(f.fileno())
                time.sleep(1)
        time.sleep(0.5)


def saved_under_lock():
    "a checkpoint is written slowly under a lock on its file, for which an evaluator waits"
    started("saved_under_lock_writer")
    while True:
        with open(f"{FOLDER}/ck", "ab") as f:
            fcntl.lockf(f, fcntl.LOCK_EX)
            work(0.5)
        time.sleep(1)


def made_anew_slowly():
    "Ray: an actor ends at each third call and is made anew, which takes 30 s in Python"
    ray = start_ray()

    @ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
    class Sim:
        def __init__(self):
            work(30)
            self.n = 0

        def step(self):
            self.n += 1
            if self.n == 3:
                os._exit(1)
            return self.n

    a = Sim.remote()
    while True:
        ray.get(a.step.remote())
        time.sleep(0.5)
