"""Programs of one process or a few, each in a wait that ends."""

from __future__ import annotations

import asyncio
import hashlib
import http.server
import multiprocessing as mp
import os
import queue
import random
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from pathlib import Path

from parts import FOLDER, START, port


def sandbox(n):
    subprocess.run(["sleep", "22" if n % 3 == 0 else "1"])
    return n


def grading():
    """A pool of processes runs sandboxes, of which some take 22 seconds."""
    with ProcessPoolExecutor(2) as pool:
        for _n in range(10**6):
            list(pool.map(sandbox, range(4)))


def api(i):
    for _k in range(3):
        time.sleep(random.uniform(9, 14))
    return i


def rate_limited():
    """Threads ask an interface that answers late, each time after three pauses."""
    with ThreadPoolExecutor(4) as pool:
        while True:
            for f in as_completed([pool.submit(api, i) for i in range(4)]):
                f.result()


def locked(n):
    import filelock

    lock = filelock.FileLock(os.path.join(FOLDER, "cache.lock"))
    while True:
        with lock:
            for _ in range(20):
                time.sleep(0.8)
        time.sleep(0.5)


def cache_lock():
    """Processes build what a cache lacks, in turns, under a lock of filelock."""
    c = mp.get_context("spawn")
    ps = [c.Process(target=locked, args=(n,)) for n in range(3)]
    [p.start() for p in ps]
    [p.join() for p in ps]


def agent_limits():
    """A coroutine looks every five seconds whether its tool has ended."""

    async def tool():
        p = await asyncio.create_subprocess_exec("sleep", "20")
        await p.wait()

    async def main():
        while True:
            t = asyncio.create_task(tool())
            while not t.done():
                await asyncio.wait([t], timeout=5)

    asyncio.run(main())


def producer(q):
    while True:
        for _ in range(3):
            time.sleep(6)
            sum(range(10**6))
        q.put(b"x" * 1000)


def slow_producer():
    """A child makes samples slowly; a thread takes them out of its queue."""
    c = mp.get_context("fork")
    q = c.Queue(2)
    p = c.Process(target=producer, args=(q,))
    p.start()
    out = queue.Queue()

    def collect():
        while True:
            out.put(q.get())

    threading.Thread(target=collect, daemon=True).start()
    while True:
        out.get()


class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        with ThreadPoolExecutor(1) as p:
            p.submit(time.sleep, 23).result()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"1")


def serve():
    s = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["P"])), H)
    s.serve_forever()


def reward_server():
    """A server answers from a pool of threads, each time after 23 seconds."""
    os.environ["P"] = str(port())
    subprocess.Popen([sys.executable, START, "serve"])
    time.sleep(1)

    async def ask():
        return await asyncio.to_thread(
            lambda: urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{os.environ['P']}/", data=b"1")).read()
        )

    async def main():
        while True:
            await asyncio.gather(*[ask() for _ in range(3)])

    asyncio.run(main())


def checkpoint_thread():
    """A thread writes checkpoints more slowly than the steps come."""
    q = queue.Queue(1)

    def write():
        while True:
            _step, state = q.get()
            with open(os.path.join(FOLDER, "ck"), "wb") as f:
                for i in range(0, len(state), 50000):
                    f.write(state[i : i + 50000])
                    f.flush()
                    os.fsync(f.fileno())
                    time.sleep(3.5)

    threading.Thread(target=write, name="writer", daemon=True).start()
    step = 0
    while True:
        step += 1
        time.sleep(0.7)
        q.put((step, bytes(500000)))


class Judge(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        time.sleep(random.choice([16, 14, 22, 9]))
        try:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"1")
        except OSError:
            pass


def judge():
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["P"])), Judge).serve_forever()


def member(n):
    lease, tasks = (os.path.join(FOLDER, "lease"), os.path.join(FOLDER, "tasks"))

    def holder():
        try:
            who, until = Path(lease).read_text().split()
            return int(who) if float(until) > time.time() else None
        except (OSError, ValueError):
            return None

    while True:
        if holder() in (None, n):
            for _ in range(6):
                Path(lease + str(n)).write_text(f"{n} {time.time() + 30}")
                os.replace(lease + str(n), lease)
                time.sleep(7)
            with open(tasks, "a") as done:
                done.write(f"{n}\n")
            if random.random() < 0.3:
                os.remove(lease)
        else:
            time.sleep(6)


def leases():
    """Three processes have one leader at a time, by a lease in a file."""
    c = mp.get_context("spawn")
    ps = [c.Process(target=member, args=(n,)) for n in range(3)]
    [p.start() for p in ps]
    [p.join() for p in ps]


def maker():
    n = 0
    while True:
        n += 1
        for _ in range(9):
            time.sleep(4)
            hashlib.pbkdf2_hmac("sha256", b"a", b"b", 50000)
        Path(FOLDER, f"stage{n}.tmp").write_text("x")
        os.rename(os.path.join(FOLDER, f"stage{n}.tmp"), os.path.join(FOLDER, f"stage{n}"))


def stages():
    """A trainer looks into a folder for its next stage every ten seconds."""
    subprocess.Popen([sys.executable, START, "maker"])
    n = 0
    while True:
        n += 1
        while not os.path.exists(os.path.join(FOLDER, f"stage{n}")):
            time.sleep(10)
        time.sleep(1)


def engine():
    state = {}

    def load():
        for part in range(30):
            time.sleep(8)
            state[part] = hashlib.pbkdf2_hmac("sha256", b"a", b"b", 300000)

    t = threading.Thread(target=load, name="loader")
    t.start()
    t.join()
    http.server.HTTPServer(("127.0.0.1", int(os.environ["P"])), Judge).serve_forever()


def permits():
    """A limiter gives out some permits every twenty seconds."""

    async def main():
        condition, left = (asyncio.Condition(), 3)

        async def refill():
            nonlocal left
            while True:
                await asyncio.sleep(20)
                async with condition:
                    left = 3
                    condition.notify_all()

        async def play(n):
            nonlocal left
            while True:
                async with condition:
                    while not left:
                        await condition.wait()
                    left -= 1
                await asyncio.sleep(0.5)

        await asyncio.gather(refill(), *[play(n) for n in range(8)])

    asyncio.run(main())
