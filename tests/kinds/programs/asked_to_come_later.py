"""A rollout, an actor of Ray, asks a model over HTTP, and where it is told to come later it sleeps for as long as it is told.

The model tells milliseconds, the rollout takes them for seconds. In the twin it is told seconds, now and then many. A trainer is idle.
"""

import http.client
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import kit
import ray


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        number, is_again = int(self.path[1:].split("/")[0]), self.path.endswith("/again")
        kit.work(0.2)
        later = 0.0 if is_again else 20000.0 if kit.differs(number) else kit.LONG_S - 3 if kit.is_late(number) else 0.0
        self.send_response(429 if later else 200)
        self.send_header("Retry-After", f"{later:.0f}")
        self.send_header("Content-Length", "0")
        self.end_headers()


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, port: int) -> None:
        kit.mark("rollout")
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    def play(self, number: int) -> int:
        again = ""
        while True:
            self.connection.request("GET", f"/{number}{again}")
            reply = self.connection.getresponse()
            reply.read()
            if reply.status == 200:
                return number
            time.sleep(float(reply.headers["Retry-After"]))
            again = "/again"


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self) -> None:
        kit.mark("trainer")

    def update(self, number: int) -> int:
        kit.work(0.3)
        return number


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    port = kit.until_there("model")["port"]
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    rollout, trainer = Rollout.remote(port), Trainer.remote()
    for number in range(1, 10**6):
        ray.get(trainer.update.remote(rollout.play.remote(number)))
        kit.step(number)


def serve() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kit.mark("model", port=server.server_port)
    server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        main()
