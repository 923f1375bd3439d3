"""Lulls of healthy runs: whoever should end them sleeps, computes or is not seen, and no fact but time speaks against anybody."""

from __future__ import annotations

import asyncio
import http.server
import itertools
import multiprocessing as mp
import os
import queue
import random
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import Future

from idioms import Threads, connected, started, work
from parts import START, port, start_ray


def token_bucket():
    "agents of coroutines wait for tokens; the bucket is filled every 25 s"

    async def main():
        filled, left = asyncio.Condition(), [2]

        async def refill():
            while True:
                await asyncio.sleep(25)
                async with filled:
                    left[0] += 2
                    filled.notify_all()

        async def agent():
            while True:
                async with filled:
                    await filled.wait_for(lambda: left[0] > 0)
                    left[0] -= 1
                await asyncio.to_thread(work, 0.3)

        await asyncio.gather(refill(), *(agent() for _ in range(4)))

    asyncio.run(main())


def rare_in_python():
    "Ray: many short steps, and after forty of them an evaluation of a minute and a half in Python"
    ray = start_ray()

    @ray.remote(num_cpus=0)
    class Trainer:
        def __init__(self):
            self.n = 0

        def step(self):
            self.n += 1
            work(0.3)
            if self.n % 40 == 0:
                work(90)

    t = Trainer.remote()
    while True:
        ray.get(t.step.remote())


def heartbeat_awaited_child(c):
    while True:
        for _ in range(5):
            time.sleep(random.uniform(5, 8))
            work(0.1)
        c.send("beat")


def heartbeat_awaited():
    "a watchdog waits for a heartbeat, at most 50 s"
    a, b = mp.Pipe()
    mp.get_context("spawn").Process(target=heartbeat_awaited_child, args=(b,), daemon=True).start()
    while True:
        if a.poll(50):
            a.recv()


def signalled_worker():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    print("ready", flush=True)
    while True:
        signal.sigwait({signal.SIGUSR1})
        work(1)
        print("done", flush=True)


def signalled():
    "a thread sends a signal to a worker each 35 s; main reads what the worker answers"
    w = subprocess.Popen([sys.executable, START, "signalled_worker"], stdout=subprocess.PIPE, text=True)
    w.stdout.readline()

    def kick():
        while True:
            time.sleep(35)
            w.send_signal(signal.SIGUSR1)

    threading.Thread(target=kick, daemon=True).start()
    while True:
        w.stdout.readline()


class Batched(socketserver.StreamRequestHandler):
    asked = queue.Queue()

    def handle(self):
        for _ in self.rfile:
            f = Future()
            Batched.asked.put(f)
            self.wfile.write(f.result())


def batching_window_server(p):
    threading.Thread(target=Threads(("127.0.0.1", int(p)), Batched).serve_forever, daemon=True).start()
    while True:
        batch = [Batched.asked.get()]
        end = time.monotonic() + 30
        while len(batch) < 8 and end > time.monotonic():
            try:
                batch.append(Batched.asked.get(timeout=end - time.monotonic()))
            except queue.Empty:
                break
        work(1)
        for f in batch:
            f.set_result(b"ok\n")


def batching_window_client(p):
    f = connected(p).makefile("rw")
    while True:
        f.write("go\n")
        f.flush()
        f.readline()
        time.sleep(0.2)


def batching_window():
    "a server waits 30 s for a batch of eight, and has three clients"
    p = port()
    started("batching_window_server", p)
    for x in [started("batching_window_client", p) for _ in range(3)]:
        x.wait()


def tool_under_permit_worker(s):
    while True:
        with s:
            subprocess.run(["sleep", "22"])
            work(0.3)
        time.sleep(0.1)


def tool_under_permit():
    "three workers share a device by a semaphore; each runs a program of 22 s under it"
    c = mp.get_context("spawn")
    s = c.Semaphore(1)
    w = [c.Process(target=tool_under_permit_worker, args=(s,)) for _ in range(3)]
    [x.start() for x in w]
    [x.join() for x in w]


def paused_for_weights():
    "Ray: an engine of coroutines is paused while the driver runs a converter for 45 s; rollouts wait for it"
    ray = start_ray()

    @ray.remote(num_cpus=0, max_concurrency=16)
    class Engine:
        def __init__(self):
            self.on = asyncio.Event()
            self.on.set()

        async def generate(self):
            await self.on.wait()
            await asyncio.sleep(0.2)

        async def pause(self):
            self.on.clear()

        async def resume(self):
            self.on.set()

    @ray.remote(num_cpus=0)
    class Rollout:
        def play(self, e):
            while True:
                ray.get(e.generate.remote())
                work(0.2)

    e = Engine.remote()
    w = [Rollout.remote() for _ in range(2)]
    [x.play.remote(e) for x in w]
    while True:
        time.sleep(3)
        ray.get(e.pause.remote())
        subprocess.run([sys.executable, "-c", "import time\nfor _ in range(9): time.sleep(5)"])
        ray.get(e.resume.remote())


def held_by_trainer():
    "Ray: an engine of threads is paused while the trainer computes for 40 s in Python"
    ray = start_ray()

    @ray.remote(num_cpus=0, max_concurrency=8)
    class Engine:
        def __init__(self):
            self.on = threading.Event()
            self.on.set()

        def generate(self):
            self.on.wait()
            time.sleep(0.2)

        def pause(self):
            self.on.clear()

        def resume(self):
            self.on.set()

    @ray.remote(num_cpus=0)
    class Rollout:
        def play(self, e):
            while True:
                ray.get(e.generate.remote())

    @ray.remote(num_cpus=0)
    class Trainer:
        def fit(self, e):
            while True:
                ray.get(e.pause.remote())
                work(40)
                ray.get(e.resume.remote())
                time.sleep(2)

    e = Engine.remote()
    w = [Rollout.remote() for _ in range(2)]
    t = Trainer.remote()
    ray.get([t.fit.remote(e), *(x.play.remote(e) for x in w)])


def backs_off_server(p):
    time.sleep(50)
    s = socket.create_server(("127.0.0.1", int(p)))
    for _ in range(3):
        c, _ = s.accept()
        c.recv(10)
        work(1)
        c.sendall(b"ok")
        c.close()


def backs_off_client(p, q):
    while True:
        back = 2
        while True:
            try:
                c = socket.create_connection(("127.0.0.1", p))
                break
            except OSError:
                time.sleep(back)
                back = min(back * 2, 30)
        c.sendall(b"x")
        c.recv(10)
        c.close()
        q.put(1)


def backs_off():
    "a client waits longer and longer for a server that is away; a trainer waits at its queue"
    p = port()
    c = mp.get_context("spawn")
    q = c.Queue()
    c.Process(target=backs_off_client, args=(p, q), daemon=True).start()

    def serve():
        while True:
            started("backs_off_server", p).wait()

    threading.Thread(target=serve, daemon=True).start()
    while True:
        q.get()


class Poll(http.server.BaseHTTPRequestHandler):
    changed, version = threading.Condition(), [0]

    def log_message(self, *a):
        pass

    def do_GET(self):
        with Poll.changed:
            if self.path == "/bump":
                Poll.version[0] += 1
                Poll.changed.notify_all()
            else:
                n = Poll.version[0]
                Poll.changed.wait_for(lambda: Poll.version[0] > n, timeout=55)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"%d" % Poll.version[0])


def long_polls_server(p):
    http.server.ThreadingHTTPServer(("127.0.0.1", int(p)), Poll).serve_forever()


def long_polls_worker(p):
    while True:
        urllib.request.urlopen(f"http://127.0.0.1:{p}/wait").read()
        work(0.3)


def long_polls():
    "workers wait at a service for the next version, which comes each 40 s"
    p = port()
    started("long_polls_server", p)
    connected(p).close()
    [started("long_polls_worker", p) for _ in range(2)]
    while True:
        for _ in range(8):
            time.sleep(5)
            work(0.05)
        urllib.request.urlopen(f"http://127.0.0.1:{p}/bump").read()


def timers_of_loop():
    "agents await futures that timers of their loop set after 35 to 40 s"

    async def main():
        loop = asyncio.get_running_loop()

        async def agent(n):
            while True:
                f = loop.create_future()
                loop.call_later(35 + n, f.set_result, n)
                await f
                work(0.1)

        await asyncio.gather(*(agent(n) for n in range(5)))

    asyncio.run(main())


def timer_of_thread():
    "a limit of the rate: main waits for an event that a timer sets after 40 s"
    while True:
        e = threading.Event()
        threading.Timer(40, e.set).start()
        e.wait()
        work(0.3)


def asked_behind_play():
    "Ray: an actor plays 25 rounds with pauses in one call, and is asked for its statistics meanwhile"
    ray = start_ray()

    @ray.remote(num_cpus=0)
    class Player:
        def play(self):
            for _ in range(25):
                time.sleep(3)

        def stats(self):
            return 1

    a = Player.remote()
    while True:
        a.play.remote()
        ray.get(a.stats.remote())


def leads_by_file_member(n):
    from parts import FOLDER

    while True:
        try:
            fd = os.open(f"{FOLDER}/leader", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            os.write(fd, n.encode())
            os.close(fd)
            for _ in range(8):
                time.sleep(4)
                os.utime(f"{FOLDER}/leader")
                work(0.05)
            os.remove(f"{FOLDER}/leader")
            time.sleep(6)
        except FileExistsError:
            time.sleep(3)


def leads_by_file():
    "who makes a file leads for half a minute, in naps, and steps down; the others look for it"
    for x in [started("leads_by_file_member", n) for n in "abc"]:
        x.wait()


def stages_joined_stage(a, b, s):
    while True:
        x = a.get()
        time.sleep(s)
        work(0.2)
        b.put(x)


def stages_joined():
    "stages of processes joined by queues; the middle one takes 30 s a piece"
    c = mp.get_context("spawn")
    q = [c.Queue(2) for _ in range(4)]
    for i, s in enumerate((0.1, 30, 0.1)):
        c.Process(target=stages_joined_stage, args=(q[i], q[i + 1], s), daemon=True).start()

    def feed():
        for n in itertools.count():
            q[0].put(n)

    threading.Thread(target=feed, daemon=True).start()
    while True:
        q[3].get()
