"""Three workers push their gradients to a parameter server, an actor with threads; a push returns once all have pushed for that version.

A worker whose gradient is no number skips that version and pushes for the next one: all three wait in the server, for two versions. In the twin a
worker asks a service of the data, a program of its own, which is once slow.
"""

import http.server
import subprocess
import sys
import threading
import time
import urllib.request

import kit
import ray
from ports import free_port

WORLD = 3


@ray.remote(num_cpus=0, max_concurrency=8)
class Server:
    def __init__(self) -> None:
        self.pushed: dict[int, int] = {}
        self.changed = threading.Condition()
        kit.mark("server")

    def push(self, version: int, rank: int) -> int:
        with self.changed:
            self.pushed[version] = self.pushed.get(version, 0) + 1
            self.changed.notify_all()
            while self.pushed[version] < WORLD:
                self.changed.wait()
        return version


@ray.remote(num_cpus=0)
class Worker:
    def __init__(self, rank: int, server: "ray.actor.ActorHandle", port: int) -> None:
        self.rank, self.server, self.port = rank, server, port
        kit.mark(f"worker{rank}")

    def train(self, first: int, steps: int) -> int:
        for version in range(first, first + steps):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{version}/{self.rank}") as answer:
                answer.read()
            kit.work(0.2)
            if self.rank == 1 and version == kit.STEP and kit.differs(version):
                continue
            ray.get(self.server.push.remote(version, self.rank))
            if self.rank == 0:
                kit.step(version)
        return first + steps


class Data(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        _, version, rank = self.path.split("/")
        if kit.is_healthy() and int(version) > 2 and rank == "1":
            time.sleep(12)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


def serve(port: int) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Data) as server:
        kit.mark("data")
        server.serve_forever()


def main() -> None:
    kit.begin()
    port = free_port()
    data = subprocess.Popen([sys.executable, __file__, "data", str(port)])
    kit.until_there("data")
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    server = Server.remote()
    workers = [Worker.remote(rank, server, port) for rank in range(WORLD)]
    ray.get([worker.train.remote(1, 10**6) for worker in workers])
    data.kill()


if __name__ == "__main__":
    serve(int(sys.argv[2])) if sys.argv[1] == "data" else main()
