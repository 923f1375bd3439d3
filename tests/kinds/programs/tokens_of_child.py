"""A service of remote calls has an engine thread, which asks a tokenizer, a program of its own; a thread there reads the words."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import xmlrpc.client
from multiprocessing.connection import Client, Listener
from socketserver import ThreadingMixIn
from xmlrpc.server import SimpleXMLRPCServer

import kit


class Words:
    def __init__(self) -> None:
        self.fresh = threading.Event()

    def read(self, step: int) -> None:
        kit.work(0.1)
        if not kit.differs(step):
            self.fresh.set()

    def split(self, step: int) -> int:
        self.fresh.clear()
        threading.Thread(target=self.read, args=(step,)).start()
        self.fresh.wait()
        return step


def tokenize() -> None:
    words = Words()
    with Listener(str(kit.folder() / "tokens"), "AF_UNIX") as listener:
        kit.mark("tokenizer")
        with listener.accept() as caller:
            while True:
                step = caller.recv()
                kit.mark("tokenizer")
                caller.send(words.split(step))


class Service(ThreadingMixIn, SimpleXMLRPCServer):
    daemon_threads = True


def serve() -> None:
    waiting: queue.Queue[tuple[int, queue.Queue[int]]] = queue.Queue()

    def run_engine() -> None:
        with Client(str(kit.folder() / "tokens"), "AF_UNIX") as tokenizer:
            while True:
                step, answer = waiting.get()
                tokenizer.send(step)
                tokens = tokenizer.recv()
                kit.work(0.3)
                answer.put(tokens)

    def generate(step: int) -> int:
        answer: queue.Queue[int] = queue.Queue()
        waiting.put((step, answer))
        return answer.get()

    threading.Thread(target=run_engine, daemon=True).start()
    server = Service(("127.0.0.1", 0), logRequests=False)
    server.register_function(generate)
    kit.mark("service", port=server.server_address[1])
    server.serve_forever()


def train() -> None:
    subprocess.Popen([sys.executable, __file__, "tokenize"])
    kit.until_there("tokenizer")
    subprocess.Popen([sys.executable, __file__, "serve"])
    with xmlrpc.client.ServerProxy(f"http://127.0.0.1:{kit.until_there('service')['port']}") as service:
        for step in range(1, 10**6):
            kit.mark("main")
            service.generate(step)
            kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "tokenize":
        tokenize()
    elif sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        train()
