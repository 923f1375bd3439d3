"""A rollout actor of Ray asks a tool server and tries again after a refusal, each time after a second, as many times as it takes.

The server has ended, and nobody starts it again. In the twin it is started again after some seconds.
"""

from __future__ import annotations

import http.server
import subprocess
import sys
import time
import urllib.error
import urllib.request

import kit
import ray
from ports import free_port


class Tool(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kit.work(0.2)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, port: int) -> None:
        kit.mark("rollout")
        self.port = port

    def run(self, number: int) -> int:
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{number}") as reply:
                    return int(reply.status)
            except (urllib.error.URLError, ConnectionError):
                time.sleep(1.0)


def main() -> None:
    kit.begin()
    port = free_port()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    rollout = Rollout.remote(port)
    command = [sys.executable, __file__, "serve", str(port)]
    for number in range(1, 10**6):
        server = subprocess.Popen(command)
        ray.get(rollout.run.remote(number))
        server.kill()
        server.wait()
        last = rollout.run.remote(number)
        if kit.differs(number):
            ray.get(last)
        time.sleep(5.0 if number % 2 else 0.5)
        again = subprocess.Popen(command)
        ray.get(last)
        again.kill()
        again.wait()
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Tool).serve_forever()
    else:
        main()
