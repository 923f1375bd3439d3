"""A trainer asks an engine over HTTP to join a new group for the weights, in the manner of TRL, and then joins it itself. A logger is idle.

The engine answers and then joins. Once it joins first and answers afterwards: the trainer waits for the answer, the engine for the trainer. In the
twin it loads for half a minute before it joins.
"""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kit
from ports import free_port


def take_weights(number: int, port: int) -> None:
    import torch
    import torch.distributed as dist

    if kit.is_late(number):
        time.sleep(kit.LONG_S)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=1, world_size=2)
    dist.broadcast(torch.zeros(64), src=0)
    dist.destroy_process_group()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number, port = asked["number"], asked["port"]
        if kit.differs(number):
            take_weights(number, port)
        else:
            threading.Thread(target=take_weights, args=(number, port), daemon=True).start()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


def engine(port: int) -> None:
    kit.mark("engine")
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        kit.mark("engine")
        server.serve_forever()


def logger(lines: multiprocessing.connection.Connection) -> None:
    kit.mark("logger")
    while True:
        lines.send(lines.recv())


def main() -> None:
    import torch
    import torch.distributed as dist

    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    port, (mine, theirs) = free_port(), spawn.Pipe()
    for target, argument in ((engine, port), (logger, theirs)):
        spawn.Process(target=target, args=(argument,), daemon=True).start()
    kit.until_there("engine")
    time.sleep(1)
    for number in range(1, 10**6):
        kit.work(0.5)
        meeting = free_port()
        body = json.dumps({"number": number, "port": meeting}).encode()
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/init_communicator", body)).read()
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{meeting}", rank=0, world_size=2)
        dist.broadcast(torch.ones(64), src=0)
        dist.destroy_process_group()
        mine.send(number)
        mine.recv()
        kit.step(number)


if __name__ == "__main__":
    main()
