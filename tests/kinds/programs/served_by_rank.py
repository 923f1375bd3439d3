"""Rank 2 serves scores over HTTP in a thread, and rank 0 asks for one before each update.

Once the handler takes part in a collective of all ranks, to have the weights: rank 0 can not, as it waits for the answer. In the twin the handler
answers from what is there, and takes long now and then.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import kit


class Scores(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        step = int(self.path[1:])
        kit.work(0.2)
        if kit.differs(step):
            dist.broadcast(torch.ones(64), src=0, group=weights)
        elif kit.is_late(step):
            time.sleep(kit.LONG_S)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"1")


def rank() -> None:
    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    if me == 2:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Scores)
        threading.Thread(target=server.serve_forever, name="scores", daemon=True).start()
        kit.mark("scores", port=server.server_port)
    port = kit.until_there("scores")["port"]
    for step in range(1, 10**6):
        if me == 0:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/{step}").read()
        kit.work(0.2)
        dist.all_reduce(torch.ones(8))
        if me == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    for one in kit.ranks_as_programs(__file__, 3):
        one.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    else:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        weights = dist.new_group([0, 1, 2])
        rank()
