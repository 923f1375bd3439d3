"""Four rollouts ask a judge over HTTP, which works on two answers at a time; their scores go through a queue to the trainer.

A request that fails keeps its permit. In the twin the judge asks all to come again later, and they sleep.
"""

from __future__ import annotations

import http.client
import http.server
import multiprocessing
import threading
import time
from multiprocessing.queues import Queue, SimpleQueue

import kit

PERMITS = threading.Semaphore(2)


class Judge(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        _, step, tries = self.path.split("/")
        if kit.is_late(int(step)) and tries == "0":
            self.send_response(429)
            self.send_header("Retry-After", str(int(kit.LONG_S)))
            self.end_headers()
            return
        PERMITS.acquire()
        kit.work(0.1)
        if kit.differs(int(step)):
            kit.mark("judge")
            self.send_response(500)  # and the permit is not given back
        else:
            PERMITS.release()
            self.send_response(200)
        self.end_headers()
        self.wfile.write(b"0.5")

    def log_message(self, *_: object) -> None:
        pass


def judge(port: int) -> None:
    kit.mark("judge")
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Judge).serve_forever()


def roll_out(number: int, port: int, steps: SimpleQueue[int], scores: Queue[float]) -> None:
    while True:
        step, tries = steps.get(), 0
        kit.mark(f"rollout{number}")
        kit.work(0.2)
        while True:
            server = http.client.HTTPConnection("127.0.0.1", port)
            server.request("GET", f"/{step}/{tries}")
            answer = server.getresponse()
            text = answer.read()
            server.close()
            if answer.status != 429:
                break
            time.sleep(float(answer.headers["Retry-After"]))
            tries += 1
        scores.put(float(text))


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    where = kit.free_port()
    spawn.Process(target=judge, args=(where,), daemon=True).start()
    kit.until_there("judge")
    time.sleep(0.5)
    found: Queue[float] = spawn.Queue()
    orders = [spawn.SimpleQueue() for _ in range(4)]
    for n, order in enumerate(orders):
        spawn.Process(target=roll_out, args=(n, where, order, found), daemon=True).start()
    for step in range(1, 10**6):
        for order in orders:
            order.put(step)
        for _ in orders:
            found.get()
        kit.work(0.3)
        kit.step(step)
