"""A thread hands out samples, another scores them and gives bad ones back; the main thread trains. A heartbeat and a server of metrics run beside."""

from __future__ import annotations

import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kit

ROUND = 8


class Metrics(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"steps 1")


def beat() -> None:
    while True:
        time.sleep(1)
        (kit.folder() / "alive").write_text(str(time.time()))


class Samples:
    def __init__(self) -> None:
        self.open: queue.Queue[int] = queue.Queue(2)
        self.good: queue.Queue[int] = queue.Queue()
        self.back: queue.Queue[int] = queue.Queue(2)

    def hand_out(self) -> None:
        for step in range(1, 10**6):
            for _ in range(ROUND):
                kit.mark("main")
                self.open.put(step)
            while not self.back.empty():
                self.open.put(self.back.get())

    def score(self) -> None:
        n = 0
        while True:
            step = self.open.get()
            n += 1
            kit.work(0.05)
            if kit.differs(step) or n % ROUND == 0:
                kit.mark("main")
                self.back.put(step)
            else:
                self.good.put(step)


if __name__ == "__main__":
    kit.begin()
    samples = Samples()
    metrics = ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    for work in (beat, metrics.serve_forever, samples.hand_out, samples.score):
        threading.Thread(target=work, daemon=True).start()
    for step in range(1, 10**6):
        batch = [samples.good.get() for _ in range(ROUND - 1)]
        kit.work(0.2)
        kit.step(step)
