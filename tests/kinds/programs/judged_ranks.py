"""Two ranks train; one asks a judge over HTTP, the judge has a pool of processes, and each of these runs a program per answer."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import urllib.request
from concurrent.futures import ProcessPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kit

POOL: list[ProcessPoolExecutor] = []


def check(step: int) -> int:
    if kit.differs(step):
        program = subprocess.Popen(["cat", kit.fifo("answer")])
        kit.mark("program", program.pid)
        kit.mark("checker")
        return program.wait()
    return subprocess.run(["sleep", "0.2"], check=True).returncode


class Judge(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        steps = [int(self.path.removeprefix("/"))] * 2
        steps[1] = 0
        answers = [POOL[0].submit(check, step) for step in steps]
        for answer in answers:
            answer.result()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"1.0")

    def log_message(self, format: str, *args: object) -> None:
        pass


def run(rank: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    port = kit.until_there("judge")["port"]
    for step in range(1, 10**6):
        kit.work(0.2)
        kit.mark(f"rank{rank}")
        if rank == 1:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{step}") as answer:
                answer.read()
        dist.all_reduce(torch.ones(256))
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        run(int(os.environ["RANK"]))
    elif sys.argv[1] == "judge":
        POOL.append(ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")))
        server = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
        kit.mark("judge", port=server.server_address[1])
        server.serve_forever()
    else:
        kit.begin()
        subprocess.Popen([sys.executable, __file__, "judge"])
        for rank in kit.ranks_as_programs(__file__, 2):
            rank.wait()
