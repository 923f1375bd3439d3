"""Services and launchers that take their time, in one long pause."""

from __future__ import annotations

import asyncio
import multiprocessing as mp
import os
import queue
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from parts import FOLDER, START, burn, port, start_ray


def validating():
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    r = dist.get_rank()
    while True:
        if r == 1:
            time.sleep(40)
            burn()
        dist.all_reduce(torch.ones(8))


def torchrun():
    """torchrun starts two ranks, one of which validates in one long pause."""
    subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port()), START, "validating"])


def grpc_server():
    import grpc

    def handle(request, context):
        time.sleep(35)
        return b"1"

    class H(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(handle)

    s = grpc.server(ThreadPoolExecutor(2))
    s.add_generic_rpc_handlers((H(),))
    s.add_insecure_port(f"127.0.0.1:{os.environ['P']}")
    s.start()
    s.wait_for_termination()


def grpc_slow():
    """A server of gRPC answers after 35 seconds."""
    import grpc

    os.environ["P"] = str(port())
    subprocess.Popen([sys.executable, START, "grpc_server"])
    time.sleep(2)
    call = grpc.insecure_channel(f"127.0.0.1:{os.environ['P']}").unary_unary("/a/b")
    while True:
        call(b"x", wait_for_ready=True)
        time.sleep(0.5)


def web():
    from aiohttp import web

    async def score(request):
        await asyncio.to_thread(time.sleep, 40)
        return web.Response(text="1")

    app = web.Application()
    app.router.add_get("/", score)
    web.run_app(app, host="127.0.0.1", port=int(os.environ["P"]), print=None)


def asked_by_actor():
    """A server of aiohttp works in threads for 40 seconds; actors ask it."""
    os.environ["P"] = str(port())
    subprocess.Popen([sys.executable, START, "web"])
    ray = start_ray()
    p = os.environ["P"]

    @ray.remote(num_cpus=0)
    class Reward:
        def score(self):
            import requests

            return requests.get(f"http://127.0.0.1:{p}/").text

    r = [Reward.remote() for _ in range(2)]
    while True:
        ray.get([x.score.remote() for x in r])


def xargs():
    """Programs of a shell run two at a time, each for half a minute."""
    while True:
        subprocess.run("seq 4 | xargs -P 2 -n 1 sh -c 'sleep 17; exec sleep 16'", shell=True, check=True)


def flocked():
    """Three programs run in turns under the lock of the program flock."""
    while True:
        ps = [subprocess.Popen(["flock", os.path.join(FOLDER, "lock"), "sh", "-c", "sleep 30; true"]) for _ in range(3)]
        for p in ps:
            p.wait()


def follower(shared):
    stage = 0
    while True:
        while shared["stage"] <= stage:
            time.sleep(6)
        stage = shared["stage"]
        burn()


def managed():
    """Children look into the dictionary of a manager; their parent works in one long pause."""
    c = mp.get_context("spawn")
    m = c.Manager()
    shared = m.dict(stage=0)
    for _ in range(2):
        c.Process(target=follower, args=(shared,), daemon=True).start()
    while True:
        time.sleep(35)
        shared["stage"] += 1


def line():
    """Threads in a line hand pieces on; one takes 40 seconds for each."""
    qs = [queue.Queue(1) for _ in range(3)]

    def stage(n):
        while True:
            x = qs[n].get()
            if n == 1:
                time.sleep(40)
            qs[n + 1].put(x)

    for n in range(2):
        threading.Thread(target=stage, args=(n,), name=f"stage-{n}", daemon=True).start()

    def feed():
        while True:
            qs[0].put(1)

    threading.Thread(target=feed, name="feed", daemon=True).start()
    while True:
        qs[2].get()


def rank(r, p):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{p}", rank=r, world_size=2)
    pool = ThreadPoolExecutor(1)

    def save():
        with open(os.path.join(FOLDER, "ck"), "wb") as f:
            for _ in range(4):
                f.write(bytes(10000))
                f.flush()
                os.fsync(f.fileno())
                time.sleep(11)

    while True:
        if r == 0:
            pool.submit(save).result()
        dist.barrier()


def spawned():
    """A rank waits for its writer of checkpoints, a slow thread."""
    import torch.multiprocessing as tmp

    tmp.spawn(rank, (port(),), nprocs=2)


def ray_queue():
    """A producer puts something into a queue of Ray every 30 seconds."""
    ray = start_ray()
    from ray.util.queue import Queue

    q = Queue(maxsize=2)

    @ray.remote(num_cpus=0)
    class Producer:
        def run(self, q):
            while True:
                time.sleep(30)
                q.put(1)

    @ray.remote(num_cpus=0)
    class Consumer:
        def run(self, q):
            while True:
                q.get()
                burn()

    a, b = (Producer.remote(), Consumer.remote())
    ray.get([a.run.remote(q), b.run.remote(q)])


def shell():
    """A shell answers each line after 33 seconds."""
    p = subprocess.Popen(["bash", "-c", "while read line; do sleep 33; echo ok; done"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while True:
        p.stdin.write("x\n")
        p.stdin.flush()
        p.stdout.readline()
        time.sleep(0.3)
