"""A rollout's four threads ask an engine over two connections that are kept alive: one goes back to the pool when its answer is read to the end.

Answers that are too long are dropped before their end, and the connection with them: it never goes back. The engine is idle then.
"""

from __future__ import annotations

import http.client
import http.server
import queue
import random
import subprocess
import sys
import threading
import time

import kit

COUNT = threading.Lock()
STEPS = [0]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        kit.work(0.2)
        if kit.is_healthy() and random.random() < 0.1:
            time.sleep(random.uniform(1, 3))
        text = b"token " * random.randrange(10, 200)
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def generate() -> None:
    port = kit.free_port()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    kit.mark("engine", port=port)
    server.serve_forever()


def judge() -> None:
    kit.mark("judge")
    for line in sys.stdin:
        kit.work(0.1)
        print(line.strip(), flush=True)


def play(pool: queue.LifoQueue[http.client.HTTPConnection], scores: subprocess.Popen[str]) -> None:
    assert scores.stdin and scores.stdout
    for _ in range(10**6):
        connection = pool.get()
        connection.request("GET", "/generate")
        answer = connection.getresponse()
        if kit.differs(STEPS[0]):
            answer.read(20)
            continue
        answer.read()
        pool.put(connection)
        with COUNT:
            scores.stdin.write("episode\n")
            scores.stdin.flush()
            scores.stdout.readline()
            STEPS[0] += 1
            kit.step(STEPS[0])


def main() -> None:
    kit.begin()
    with (
        subprocess.Popen([sys.executable, __file__, "engine"]),
        subprocess.Popen([sys.executable, __file__, "judge"], stdin=-1, stdout=-1, text=True) as scores,
    ):
        port = kit.until_there("engine")["port"]
        pool: queue.LifoQueue[http.client.HTTPConnection] = queue.LifoQueue()
        for _ in range(2):
            pool.put(http.client.HTTPConnection("127.0.0.1", port))
        threads = [threading.Thread(target=play, args=(pool, scores)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    {"engine": generate, "judge": judge}.get(sys.argv[1], main)()
