"""A reward server in the manner of gunicorn: a master listens and forks workers, which accept, and ends each after some answers and makes a new one.

Once it makes no new ones, as those that ended well need none: nobody accepts any more, and the kernel still takes connections in. In the twin new
workers load for half a minute. Two rollouts, actors of Ray, ask it.
"""

from __future__ import annotations

import http.server
import os
import socket
import subprocess
import sys
import time
import urllib.request

import kit
import ray


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kit.work(0.1)
        body = b"0.5"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def accept(listener: socket.socket, answers: int) -> None:
    server = http.server.HTTPServer(listener.getsockname(), Handler, bind_and_activate=False)
    server.socket = listener
    for _ in range(answers):
        server.handle_request()


def serve() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    kit.mark("master", port=listener.getsockname()[1])
    made = 0
    working: set[int] = set()
    while True:
        while len(working) < 2 and not (made >= 4 and kit.differs(made)):
            made += 1
            if (pid := os.fork()) == 0:
                if made > 4 and kit.is_healthy():
                    time.sleep(kit.LONG_S)
                accept(listener, 3)
                os._exit(0)
            working.add(pid)
        if made >= 4 and not working:
            kit.mark("master", port=listener.getsockname()[1])
        ended, _ = os.waitpid(-1, os.WNOHANG) if working else (0, 0)
        working.discard(ended)
        if not ended:
            time.sleep(0.5)
        if made >= 4 and not working and not kit.is_healthy():
            while True:
                time.sleep(1)


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, number: int, port: int) -> None:
        kit.mark(f"rollout{number}")
        self.port = port

    def play(self, number: int) -> bytes:
        kit.work(0.2)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/score?{number}") as answer:
            return answer.read()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    port = kit.until_there("master")["port"]
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    rollouts = [Rollout.remote(number, port) for number in range(2)]
    for number in range(1, 10**6):
        ray.get([one.play.remote(number) for one in rollouts])
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        main()
