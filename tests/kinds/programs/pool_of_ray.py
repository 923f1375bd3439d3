"""A driver has answers graded by Ray's own pool, in the manner of multiprocessing; a grader asks a judge, a program, over HTTP without a limit.

Once the judge waits for a file that nobody writes. In the twin it thinks long now and then. A cache, an actor, is idle.
"""

from __future__ import annotations

import http.server
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import kit
import ray
from ray.util.multiprocessing import Pool


class Judge(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        number = int(self.path[1:])
        if number % 4 == 1 and kit.differs(number // 4):
            kit.mark("judge")
            Path(kit.fifo("rubric")).read_bytes()
        if number % 4 == 1 and kit.is_late(number // 4):
            time.sleep(kit.LONG_S)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"1")

    def log_message(self, *_: object) -> None:
        return


def judge() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    kit.mark("judge", port=server.server_address[1])
    server.serve_forever()


def grade(asked: tuple[int, int]) -> int:
    number, port = asked
    kit.mark(f"grader{number % 4}")
    kit.work(0.2)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{number}") as answer:
        return int(answer.read())


@ray.remote(num_cpus=0)
class Cache:
    def __init__(self) -> None:
        kit.mark("cache")
        self.kept: list[int] = []

    def keep(self, scores: list[int]) -> int:
        self.kept += scores
        return len(self.kept)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "judge"])
    port = kit.until_there("judge")["port"]
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    cache = Cache.remote()
    with Pool(2) as pool:
        for step in range(1, 10**6):
            scores = pool.map(grade, [(step * 4 + n, port) for n in range(4)], chunksize=1)
            ray.get(cache.keep.remote(scores))
            kit.mark("main")
            kit.step(step)


if __name__ == "__main__":
    judge() if sys.argv[1] == "judge" else main()
