"""A controller sends episodes to two workers, who take them at once and tell it over HTTP when one is done; a thread of it takes these words.

Once its handler refuses the word of an episode, and the worker goes on without. The controller waits on a condition for the last one. In the twin an
episode is long.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import kit

EPISODES = 4
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def post(port: int, **told: int) -> None:
    opener.open(f"http://127.0.0.1:{port}/", data=json.dumps(told).encode()).read()


class Words(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_taken = self.server.taken(told)  # type: ignore[attr-defined]
        self.send_response(200 if is_taken else 500)
        self.send_header("Content-Length", "0")
        self.end_headers()


def worker(name: str) -> None:
    episodes: queue.Queue[dict[str, int]] = queue.Queue()
    controller = kit.until_there("controller")["port"]

    def taken(told: dict[str, int]) -> bool:
        episodes.put(told)
        return True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Words)
    server.taken = taken  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
    kit.mark(name, port=server.server_port)
    while True:
        told = episodes.get()
        kit.work(0.3)
        if kit.is_late(told["step"]) and told["number"] == 2:
            time.sleep(kit.LONG_S)
        try:
            post(controller, **told)
        except urllib.error.HTTPError as error:
            print("not told:", error)


def main() -> None:
    kit.begin()
    done, changed = set[int](), threading.Condition()

    def taken(told: dict[str, int]) -> bool:
        if told["number"] == 2 and kit.differs(told["step"]):
            return False
        with changed:
            done.add(told["number"])
            changed.notify_all()
        return True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Words)
    server.taken = taken  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, name="words", daemon=True).start()
    kit.mark("controller", port=server.server_port)
    for name in ("worker0", "worker1"):
        subprocess.Popen([sys.executable, __file__, name])
    ports = [kit.until_there(name)["port"] for name in ("worker0", "worker1")]
    for step in range(1, 10**6):
        done.clear()
        for number in range(EPISODES):
            post(ports[number % 2], step=step, number=number)
        with changed:
            changed.wait_for(lambda: len(done) == EPISODES)
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    worker(sys.argv[1]) if sys.argv[1].startswith("worker") else main()
