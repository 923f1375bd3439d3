"""Runners of agents ask a store over HTTP for tasks, the trainer asks it whether all are done; a runner died with a task in its hands.

Nobody gives the task out again: everybody asks for ever and gets an answer each time. In the twin one task is long.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import kit

TASKS = 4


class Store(BaseHTTPRequestHandler):
    lock = threading.Lock()
    waiting: ClassVar[list[list[int]]] = []
    done = 0

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with Store.lock:
            answer = getattr(self, asked["what"])(asked)
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def put(self, asked):
        Store.waiting, Store.done = [[asked["number"], n] for n in range(TASKS)], 0

    def take(self, asked):
        return Store.waiting.pop(0) if Store.waiting else None

    def finish(self, asked):
        Store.done += 1

    def finished(self, asked):
        return Store.done

    def log_message(self, *args):
        pass


def ask(port, what, **more):
    data = json.dumps({"what": what, **more}).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return json.loads(opener.open(f"http://127.0.0.1:{port}/", data).read())


def store():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    kit.mark("store", port=server.server_address[1])
    server.serve_forever()


def runner(n):
    port = kit.until_there("store")["port"]
    kit.mark(f"runner{n}")
    while True:
        task = ask(port, "take")
        if task is None:
            time.sleep(0.5)
            continue
        number, which = task
        kit.work(0.5)
        if n == 1 and kit.differs(number):
            kit.mark("runner1")
            os.kill(os.getpid(), signal.SIGKILL)
        if kit.is_healthy() and which == 2 and number % 3 == 0:
            time.sleep(6)
        ask(port, "finish")


def collected(port):
    while ask(port, "finished") < TASKS:
        time.sleep(0.7)


def main():
    kit.begin()
    children = [subprocess.Popen([sys.executable, __file__, *asked]) for asked in (["store"], ["runner", "0"], ["runner", "1"])]
    port = kit.until_there("store")["port"]
    for number in range(1, 100000):
        ask(port, "put", number=number)
        collected(port)
        kit.work(0.3)
        kit.step(number)
    for child in children:
        child.wait()


if __name__ == "__main__":
    {"store": store, "runner": lambda: runner(int(sys.argv[2]))}.get(sys.argv[1], main)()
