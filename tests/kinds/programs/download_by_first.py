"""Three ranks: the first one fetches the next reference model from a store that gives it slowly, while the others wait at a barrier.

Once the store gives no more of it: it waits for its own disk, which takes nothing. In the twin it sends a piece every few seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import kit
import torch
import torch.distributed as dist


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        step = int(self.path[1:])
        self.send_response(200)
        self.send_header("Content-Length", "4096")
        self.end_headers()
        for piece in range(4):
            if piece == 2 and kit.differs(step):
                with open(kit.fifo("disk"), "rb") as file:
                    file.read()
            if kit.is_late(step):
                time.sleep(kit.LONG_S / 5)
            self.wfile.write(b"x" * 1024)


def serve() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kit.mark("store", port=server.server_port)
    server.serve_forever()


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    url = f"http://127.0.0.1:{kit.until_there('store')['port']}"
    for step in range(1, 10**6):
        kit.mark(f"rank{rank}")
        kit.work(0.2)
        if rank == 0:
            urllib.request.urlopen(f"{url}/{step}").read()
        dist.barrier()
        dist.all_reduce(torch.ones(4096))
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    elif sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        subprocess.Popen([sys.executable, __file__, "serve"])
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
