"""The first rare long call after many short ones of its name."""

from __future__ import annotations

import hashlib
import http.server
import os
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from parts import FOLDER, START, port, start_ray


class Late(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        time.sleep(70)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"1")


def late():
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["P"])), Late).serve_forever()


def run(long):
    """A trainer makes forty short steps, and then one with something rare in it; another actor waits for each step too."""
    ray = start_ray()

    @ray.remote(num_cpus=0)
    class Trainer:
        def __init__(self):
            self.n = 0

        def step(self):
            self.n += 1
            time.sleep(0.4)
            if self.n == 40:
                long()
            return self.n

    @ray.remote(num_cpus=0)
    class Buffer:
        def add(self, x):
            return x

    t, b = (Trainer.remote(), Buffer.remote())
    while True:
        ray.get(b.add.remote(t.step.remote()))


def evaluates_in_c():
    """The rare one is a computation in C."""
    run(lambda: hashlib.pbkdf2_hmac("sha256", b"a", b"b", 120000000))


def naps():
    """The rare one is a row of naps."""

    def long():
        for _ in range(60):
            time.sleep(2)

    run(long)


def runs_program():
    """The rare one is a program."""
    run(lambda: subprocess.run(["sleep", "110"]))


def asks_judge():
    """The rare one is a question that takes 70 seconds to answer."""
    os.environ["P"] = str(port())
    subprocess.Popen([sys.executable, START, "late"])
    p = os.environ["P"]
    run(lambda: urllib.request.urlopen(f"http://127.0.0.1:{p}/").read())


def in_threads():
    """The rare one is work of two threads."""

    def work(n):
        for _ in range(30):
            time.sleep(3)

    def long():
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, range(2)))

    run(long)


def writes():
    """The rare one is a checkpoint that is written slowly."""

    def long():
        with open(os.path.join(FOLDER, "ck"), "wb") as f:
            for _ in range(100):
                f.write(bytes(200000))
                f.flush()
                os.fsync(f.fileno())
                time.sleep(1)

    run(long)
