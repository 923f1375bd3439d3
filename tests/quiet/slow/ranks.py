"""Ranks of which one is late, or all wait for what takes long."""

from __future__ import annotations

import http.server
import os
import random
import subprocess
import sys
import time
import urllib.request
from datetime import timedelta

from parts import FOLDER, burn, gloo

COMPILE = 'import hashlib; hashlib.pbkdf2_hmac("sha256", b"a", b"b", 6000000)'


def evaluate_rank0():
    """Rank 0 evaluates in steps of two seconds; the others wait in a barrier."""
    torch, dist, r = gloo()
    while True:
        dist.all_reduce(torch.ones(8))
        if r == 0:
            for _ in range(12):
                time.sleep(2.2)
                sum(range(10**6))
        dist.barrier()


def first_compile():
    """One rank compiles by a script of the shell; the others wait in a collective."""
    torch, dist, r = gloo()
    while True:
        if r == 1:
            subprocess.run(["sh", "-c", "for i in 1 2 3 4 5 6; do sleep 4; done"], check=True)
        dist.all_reduce(torch.ones(8))


def sync_in_parts():
    """Rank 0 sends weights part by part, and then works for long."""
    torch, dist, r = gloo()
    while True:
        for _part in range(30):
            if r == 0:
                time.sleep(1.5)
            dist.broadcast(torch.ones(1024), src=0)
        if r == 0:
            time.sleep(9)


def slow_disk():
    """Rank 0 writes through a pipe to a program that takes it slowly."""
    _torch, dist, r = gloo()
    while True:
        if r == 0:
            with subprocess.Popen(
                [sys.executable, "-c", "import sys,time\nwhile sys.stdin.buffer.read(20000): time.sleep(0.7)"], stdin=subprocess.PIPE
            ) as disk:
                disk.stdin.write(b"x" * 700000)
                disk.stdin.close()
                disk.wait()
        dist.barrier()


class Data:
    def __len__(self):
        return 10**6

    def __getitem__(self, i):
        time.sleep(8)
        return float(i)


def slow_loader():
    """Rank 0 has a loader whose samples take eight seconds each."""
    torch, dist, r = gloo()
    from torch.utils.data import DataLoader

    for _x in DataLoader(Data(), num_workers=2 if r == 0 else 0, batch_size=2) if r == 0 else iter(int, 1):
        dist.all_reduce(torch.ones(8))


class Slow(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(20 * 4096))
        self.end_headers()
        for _ in range(20):
            time.sleep(random.uniform(5, 9))
            self.wfile.write(b"x" * 4096)
            self.wfile.flush()


def peer():
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["P"])), Slow).serve_forever()


def slow_download():
    """A rank downloads from a slow peer; the others wait in a barrier."""
    _torch, dist, r = gloo()
    while True:
        if r == 0:
            with urllib.request.urlopen(f"http://127.0.0.1:{os.environ['P']}/shard") as answer:
                while answer.read(4096):
                    pass
        dist.barrier()


def compile_baton():
    """One rank compiles for minutes under the lock file of torch's helper; the others look for its end."""
    from torch.utils.file_baton import FileBaton

    torch, dist, r = gloo()
    n = 0
    while True:
        n += 1
        if r:
            time.sleep(1)
        baton = FileBaton(os.path.join(FOLDER, f"lock{n}"))
        if r == 0 and baton.try_acquire():
            try:
                compiler = f"nice -n 19 {sys.executable} -c '{COMPILE}'"
                subprocess.run(["sh", "-c", f"for part in a b c d; do {compiler}; sleep 9; done"], check=True)
            finally:
                baton.release()
        else:
            baton.wait()
        dist.all_reduce(torch.ones(4))


def microbatches():
    """Ranks have unlike numbers of microbatches."""
    torch, dist, r = gloo()
    rng = random.Random(7)
    while True:
        counts = [rng.choice([1, 3, 24]) for _ in range(3)]
        for _ in range(counts[r]):
            time.sleep(1.3)
            (torch.randn(200, 200) @ torch.randn(200, 200)).sum()
        for _ in range(4):
            dist.all_reduce(torch.ones(64))


def monitored():
    """Rank 0 evaluates by a program that prints now and then; the others are in a monitored barrier."""
    _torch, dist, r = gloo()
    while True:
        if r == 0:
            with subprocess.Popen(
                [sys.executable, "-c", "import time\nfor i in range(6):\n time.sleep(7.5); print(i, flush=True)"], stdout=subprocess.PIPE
            ) as p:
                for _line in p.stdout:
                    burn(50000)
        dist.monitored_barrier(timeout=timedelta(minutes=20))


def store_key():
    """Ranks wait for a key of torch's store that comes late."""
    torch, dist, r = gloo()
    n = 0
    store = dist.distributed_c10d._get_default_store()
    while True:
        n += 1
        if r == 0:
            for _ in range(5):
                time.sleep(8)
                burn()
            store.set(f"ready{n}", "1")
        else:
            store.wait([f"ready{n}"], timedelta(minutes=30))
        dist.all_reduce(torch.ones(3))
