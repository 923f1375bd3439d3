"""A monitor asks rank 0 over HTTP whether it is well, in a thread there that reads the step under a lock, and then gives rank 1 leave to go on.

Once rank 0 takes part in the step's sum under that lock: rank 1 has no leave yet. In the twin the handler takes long.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import kit

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
lock = threading.Lock()


class Health(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        if kit.is_late(int(self.path[1:])):
            time.sleep(kit.LONG_S)
        with lock:
            self.send_response(200)
        self.end_headers()
        self.wfile.write(b"well")


def monitor() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    kit.mark("monitor", port=listener.getsockname()[1])
    connection, _ = listener.accept()
    port = kit.until_there("health")["port"]
    lines = connection.makefile("r")
    while True:
        step = int(lines.readline())
        if kit.differs(step):
            time.sleep(1)
        opener.open(f"http://127.0.0.1:{port}/{step}").read()
        connection.sendall(b"go\n")


def rank() -> None:
    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    if me == 0:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Health)
        threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
        kit.mark("health", port=server.server_port)
    connection = socket.create_connection(("127.0.0.1", kit.until_there("monitor")["port"])) if me == 1 else None
    lines = connection.makefile("r") if connection is not None else None
    for step in range(1, 10**6):
        if connection is not None and lines is not None:
            connection.sendall(f"{step}\n".encode())
            lines.readline()
        if me == 0 and kit.differs(step):
            with lock:
                dist.all_reduce(torch.ones(8))
        else:
            dist.all_reduce(torch.ones(8))
        kit.work(0.2)
        if me == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "monitor"])
    for one in kit.ranks_as_programs(__file__, 2):
        one.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        monitor() if sys.argv[1] == "monitor" else main()
    else:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        rank()
