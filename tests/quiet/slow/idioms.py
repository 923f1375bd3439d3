"""Idioms of asynchronous runs: engines of threads, shells in pools, checkpoints in shards, caches under locks, restarts."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures as cf
import gc
import glob
import hashlib
import http.server
import multiprocessing as mp
import os
import queue
import random
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

from parts import FOLDER, START, port, start_ray


def started(name, *given):
    return subprocess.Popen([sys.executable, START, name, *map(str, given)])


def connected(p):
    """A connection to a server that may only start."""
    while True:
        try:
            return socket.create_connection(("127.0.0.1", int(p)))
        except OSError:
            time.sleep(0.2)


def work(seconds):
    until, text = time.monotonic() + seconds, b"a"
    while time.monotonic() < until:
        text = hashlib.sha256(text).digest() * 10


def generations():
    "asynchronous GRPO in coroutines: generations of 20 to 45 s, the trainer takes four at a time"

    async def main():
        q = asyncio.Queue(8)

        async def generate(n):
            while True:
                await asyncio.sleep(random.uniform(20, 45))
                await q.put(n)

        kept = [asyncio.create_task(generate(n)) for n in range(6)]
        while kept:
            [await q.get() for _ in range(4)]
            await asyncio.to_thread(work, 1)

    asyncio.run(main())


class Replay(socketserver.BaseRequestHandler):
    items, cv = [], threading.Condition()

    def handle(self):
        for line in self.request.makefile():
            with Replay.cv:
                if line == "put\n":
                    Replay.items.append(1)
                    Replay.cv.notify_all()
                else:
                    while len(Replay.items) < 3:
                        Replay.cv.wait()
                    del Replay.items[:3]
            self.request.sendall(b"ok\n")


class Threads(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def replay_in_threads_buffer(p):
    Threads(("127.0.0.1", int(p)), Replay).serve_forever()


def replay_in_threads_actor(p):
    s = connected(p)
    f = s.makefile()
    while True:
        time.sleep(random.uniform(25, 40))
        s.sendall(b"put\n")
        f.readline()


def replay_in_threads():
    "a replay buffer in a server of threads; the learner waits for three episodes of half a minute"
    p = port()
    started("replay_in_threads_buffer", p)
    [started("replay_in_threads_actor", p) for _ in range(2)]
    s = connected(p)
    f = s.makefile()
    while True:
        s.sendall(b"take\n")
        f.readline()
        work(1)


def checked_by_shells_grade(n):
    return subprocess.run(["sh", "-c", f"sleep {random.randint(15, 35)}; echo {n}"], capture_output=True, text=True).stdout


def checked_by_shells():
    "a reward pool of processes runs checkers for half a minute each"
    with cf.ProcessPoolExecutor(2, mp_context=mp.get_context("spawn")) as pool:
        while True:
            for f in cf.as_completed([pool.submit(checked_by_shells_grade, n) for n in range(6)]):
                f.result()


def tries_counted_maker(q):
    while True:
        time.sleep(random.uniform(30, 50))
        q.put(1)


def tries_counted():
    "a sampler asks a queue for five seconds at a time and counts its tries"
    c = mp.get_context("spawn")
    q = c.Queue()
    c.Process(target=tries_counted_maker, args=(q,), daemon=True).start()
    tries = 0
    while True:
        try:
            q.get(timeout=5)
            work(0.5)
        except queue.Empty:
            tries += 1


def computed_in_c_engine():
    v = 0
    while True:
        while int(Path(FOLDER, "version").read_text() or 0) <= v:
            time.sleep(1)
        v = int(Path(FOLDER, "version").read_text())
        work(0.5)


def computed_in_c():
    "weights through a file: the trainer computes for half a minute between two versions"
    Path(FOLDER, "version").write_text("0")
    [started("computed_in_c_engine") for _ in range(2)]
    v = 0
    while True:
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", 25_000_000)
        v += 1
        Path(FOLDER, "v.tmp").write_text(str(v))
        os.replace(f"{FOLDER}/v.tmp", f"{FOLDER}/version")


class Judge(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", 30_000_000)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"1")


def three_clients_server(p):
    http.server.ThreadingHTTPServer(("127.0.0.1", int(p)), Judge).serve_forever()


def three_clients():
    "an evaluation server computes in C for long; three clients wait with a limit of ten minutes"
    p = port()
    started("three_clients_server", p)
    connected(p).close()

    def ask(n):
        while True:
            urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{p}/", data=b"1"), timeout=600).read()
            time.sleep(1)

    t = [threading.Thread(target=ask, args=(n,), name=f"client-{n}") for n in range(3)]
    [x.start() for x in t]
    [x.join() for x in t]


def scripts_of_naps():
    "a sandbox executor: at most three scripts at a time, each of 20 to 40 naps"

    async def main():
        permits = asyncio.Semaphore(3)

        async def run(n):
            async with permits:
                q = await asyncio.create_subprocess_shell(
                    f"i=0; while [ $i -lt {random.randint(20, 40)} ]; do sleep 1; i=$((i+1)); done; echo {n}", stdout=subprocess.PIPE
                )
                return await q.communicate()

        while True:
            for f in asyncio.as_completed([run(n) for n in range(9)]):
                await f

    asyncio.run(main())


def saved_in_shards_rank(r, p):
    import torch
    import torch.distributed as d

    torch.set_num_threads(1)
    d.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{p}", rank=int(r), world_size=3)
    while True:
        d.all_reduce(torch.ones(8))
        if int(r) == 0:
            for shard in range(12):
                torch.save(torch.ones(200_000), f"{FOLDER}/shard{shard}")
                fd = os.open(f"{FOLDER}/shard{shard}", os.O_RDWR)
                os.fsync(fd)
                os.close(fd)
                time.sleep(4)
        d.barrier()


def saved_in_shards():
    "rank 0 saves a checkpoint in shards, slowly; the others wait at a barrier"
    p = port()
    for x in [started("saved_in_shards_rank", r, p) for r in range(3)]:
        x.wait()


def tokenised_tok(n):
    words = collections.Counter()
    for i in range(900_000):
        words[(i * 7919 + n) % 50021] += 1
    return len(words)


def tokenised():
    "slow tokenisation in a pool; the main process takes results in order"
    with mp.get_context("spawn").Pool(2) as pool:
        while True:
            for _ in pool.imap(tokenised_tok, range(8)):
                pass


def collects_garbage():
    "garbage collection of a large graph, again and again, beside a heartbeat"
    keep = [[i, {"a": i}] for i in range(3_000_000)]

    def beat():
        while True:
            time.sleep(5)

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    while keep:
        gc.collect()
        time.sleep(0.05)


def under_cache_lock():
    "an LRU cache computes under its lock for 25 s; four threads want it"
    lock = threading.RLock()
    known = {}

    def embed(k):
        with lock:
            if k not in known:
                time.sleep(25)
                known[k] = 1
            return known[k]

    with cf.ThreadPoolExecutor(4, thread_name_prefix="embed") as pool:
        n = 0
        while True:
            list(pool.map(embed, range(n, n + 3)))
            n += 1
            known.clear()


def two_prefetchers():
    "a dataset prefetcher: two threads read shards for 15 s each into a bounded buffer"
    q = queue.Queue(4)

    def read():
        while True:
            time.sleep(random.uniform(10, 20))
            work(0.2)
            q.put(1)

    for n in range(2):
        threading.Thread(target=read, name=f"prefetch-{n}", daemon=True).start()
    while True:
        q.get()
        work(0.3)


def started_again_worker(n):
    work(3)
    time.sleep(4)
    sys.exit(1 if random.random() < 0.9 else 0)


def started_again():
    "elastic restarts: a launcher starts a failing worker again after a growing pause"
    back = 10
    while True:
        w = started("started_again_worker", 0)
        while w.poll() is None:
            time.sleep(0.5)
        time.sleep(back)
        back = min(back * 1.5, 40)


def greedy_search_rank(r, p):
    import torch
    import torch.distributed as d

    torch.set_num_threads(1)
    d.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{p}", rank=int(r), world_size=3)
    n = 0
    while True:
        n += 1
        w = torch.ones(4096)
        if n % 4 == 0 and int(r) == 0:
            for _ in range(30):
                time.sleep(1.2)
                torch.randn(200, 200) @ torch.randn(200, 200)
        d.broadcast(w, src=0)
        time.sleep(0.3)


def greedy_search():
    "rank 0 searches greedily for half a minute every fourth step; the others wait for its broadcast"
    p = port()
    for x in [started("greedy_search_rank", r, p) for r in range(3)]:
        x.wait()


def shared_version_engine(d):
    v = 0
    while True:
        while d["version"] <= v:
            time.sleep(3)
        v = d["version"]
        work(0.5)


def shared_version():
    "engines look for a version in a shared dictionary; the trainer sums gradients in naps of six seconds"
    c = mp.get_context("spawn")
    m = c.Manager()
    d = m.dict(version=0)
    for _ in range(2):
        c.Process(target=shared_version_engine, args=(d,), daemon=True).start()
    while True:
        for _ in range(6):
            time.sleep(6)
            work(0.1)
        d["version"] += 1


class Tokens(socketserver.StreamRequestHandler):
    def handle(self):
        for _ in self.rfile:
            for _ in range(6):
                time.sleep(random.uniform(5, 11))
                self.wfile.write(b"token\n")
            self.wfile.write(b"end\n")


def tokens_streamed_server(p):
    Threads(("127.0.0.1", int(p)), Tokens).serve_forever()


def tokens_streamed():
    "tokens are streamed, one each eight seconds"
    p = port()
    started("tokens_streamed_server", p)
    s = connected(p)
    f = s.makefile("rw")
    while True:
        f.write("go\n")
        f.flush()
        while f.readline() != "end\n":
            pass


def folder_of_batches_maker():
    n = 0
    while True:
        time.sleep(20)
        work(1)
        n += 1
        Path(f"{FOLDER}/batch-{n}.tmp").touch()
        os.rename(f"{FOLDER}/batch-{n}.tmp", f"{FOLDER}/batch-{n}.pt")


def folder_of_batches():
    "a trainer looks for batches in a folder; a sampler makes one in 20 s"
    started("folder_of_batches_maker")
    while True:
        while not (found := sorted(glob.glob(f"{FOLDER}/batch-*.pt"))):
            time.sleep(2)
        for x in found:
            os.remove(x)
            work(0.3)


def first_of_episodes_episode(n):
    for _ in range(9):
        time.sleep(random.uniform(3, 6))
    return n


def first_of_episodes():
    "a driver waits ten seconds at a time for whoever ends first of long episodes"
    with cf.ProcessPoolExecutor(3, mp_context=mp.get_context("spawn")) as pool:
        left = {pool.submit(first_of_episodes_episode, n) for n in range(3)}
        while True:
            done, left = cf.wait(left, timeout=10, return_when=cf.FIRST_COMPLETED)
            left |= {pool.submit(first_of_episodes_episode, 0) for _ in done}


def engine_of_threads():
    "Ray: an asynchronous actor generates in threads for 50 s; a driver asks with limits"
    ray = start_ray()

    @ray.remote(num_cpus=0, max_concurrency=8)
    class Engine:
        async def generate(self, n):
            await asyncio.to_thread(time.sleep, 50)
            return n

    e = Engine.remote()
    while True:
        left = [e.generate.remote(n) for n in range(4)]
        while left:
            _, left = ray.wait(left, num_returns=len(left), timeout=15)


def steps_and_evaluations():
    "Ray: workers make steps of a second, and every twentieth evaluates for 45 s in pieces"
    ray = start_ray()

    @ray.remote(num_cpus=0)
    class Worker:
        def __init__(self):
            self.n = 0

        def step(self):
            self.n += 1
            time.sleep(0.5)
            if self.n % 20 == 0:
                for _ in range(15):
                    time.sleep(3)

    @ray.remote(num_cpus=0)
    class Buffer:
        def add(self, x):
            return 1

    w = [Worker.remote() for _ in range(2)]
    b = Buffer.remote()
    while True:
        ray.get([x.step.remote() for x in w])
        ray.get(b.add.remote(1))


def packed_by_shell():
    "a shell packs a checkpoint through a slow pipe"
    while True:
        subprocess.run(
            ["bash", "-c", "set -o pipefail; for i in 1 2 3 4 5; do head -c 100000 /dev/urandom; sleep 8; done | gzip | wc -c > $SLOW_FOLDER/size"],
            check=True,
        )


def replay_actor():
    "Ray: a trainer actor asks a replay actor for a batch, which waits in its own condition until rollouts have put enough"
    ray = start_ray()

    @ray.remote(num_cpus=0, max_concurrency=4)
    class Replay:
        def __init__(self):
            self.n = 0
            self.cv = threading.Condition()

        def put(self):
            with self.cv:
                self.n += 1
                self.cv.notify_all()

        def take(self, k):
            with self.cv:
                self.cv.wait_for(lambda: self.n >= k)
                self.n -= k

    @ray.remote(num_cpus=0)
    class Rollout:
        def play(self, r):
            while True:
                time.sleep(random.uniform(15, 30))
                ray.get(r.put.remote())

    @ray.remote(num_cpus=0)
    class Trainer:
        def fit(self, r):
            while True:
                ray.get(r.take.remote(4))
                work(1)

    r = Replay.remote()
    w = [Rollout.remote() for _ in range(2)]
    t = Trainer.remote()
    ray.get([t.fit.remote(r), *(x.play.remote(r) for x in w)])
