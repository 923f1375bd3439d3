"""A server of HTTP hands requests to an engine over one pipe and takes answers from another; in the engine a thread takes the requests in.

That thread keeps room in a cache for each picture and waits until a request that is through gives its room back; the loop waits for requests.
Once an answer without words is dropped with its room: the thread waits for room, the loop for the thread. In the twin a picture takes long.
"""

from __future__ import annotations

import http.server
import multiprocessing
import queue
import subprocess
import sys
import threading
import time
import urllib.request
from multiprocessing.connection import Connection

import kit

ROOM = 2


class Core:
    def __init__(self, requests: Connection, answers: Connection) -> None:
        self.requests, self.answers = requests, answers
        self.fresh: queue.Queue[int] = queue.Queue()
        self.room = ROOM
        self.change = threading.Condition()

    def take_in(self) -> None:
        while True:
            number = self.requests.recv()
            with self.change:
                self.change.wait_for(lambda: self.room > 0)
                self.room -= 1
            if kit.is_late(number):
                time.sleep(kit.LONG_S / 2)
                kit.in_c(8)
            self.fresh.put(number)

    def run(self) -> None:
        threading.Thread(target=self.take_in, name="inputs", daemon=True).start()
        while True:
            number = self.fresh.get()
            kit.work(0.3)
            if not kit.differs(number):
                with self.change:
                    self.room += 1
                    self.change.notify()
            self.answers.send(number)


def run_core(requests: Connection, answers: Connection) -> None:
    kit.mark("core")
    Core(requests, answers).run()


def serve() -> None:
    theirs, requests = multiprocessing.Pipe(duplex=False)
    answers, their_answers = multiprocessing.Pipe(duplex=False)
    core = multiprocessing.get_context("spawn").Process(target=run_core, args=(theirs, their_answers))
    core.start()
    theirs.close()
    their_answers.close()
    waiting: dict[int, queue.Queue[int]] = {}

    def take_answers() -> None:
        while True:
            number = answers.recv()
            waiting.pop(number).put(number)

    threading.Thread(target=take_answers, name="answers", daemon=True).start()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = int(self.path.rpartition("/")[2])
            waiting[number] = queue.Queue()
            requests.send(number)
            waiting[number].get()
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kit.mark("server", port=server.server_address[1])
    server.serve_forever()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    port = kit.until_there("server")["port"]
    for number in range(1, 10**6):
        kit.mark("main")
        urllib.request.urlopen(f"http://127.0.0.1:{port}/generate/{number}").read()
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        main()
