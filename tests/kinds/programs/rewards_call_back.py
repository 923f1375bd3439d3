"""A reward server of HTTP with three threads in all; to score an answer, its handler asks the same server for the scale.

With two answers at a time a thread is left for the scale, with three at a time none is.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import kit

THREADS = 3


class Reward(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/scale":
            text = "0.5"
        else:
            time.sleep(1.0)
            text = ask(self.server.server_port, "scale")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(HTTPServer):
    request_queue_size = 16

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address, Reward)
        self.pool = ThreadPoolExecutor(THREADS, thread_name_prefix="handler")

    def process_request(self, request, client_address) -> None:
        self.pool.submit(self.answer, request, client_address)

    def answer(self, request, client_address) -> None:
        try:
            self.finish_request(request, client_address)
        finally:
            self.shutdown_request(request)


def ask(port: int, what: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{what}") as answer:
        return str(answer.read().decode())


def serve() -> None:
    port = kit.free_port()
    server = Server(("127.0.0.1", port))
    kit.mark("server", port=port)
    server.serve_forever()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    port = kit.until_there("server")["port"]
    for step in range(1, 10**6):
        kit.work(0.3)
        at_a_time = 3 if kit.differs(step) else 2
        threads = [threading.Thread(target=ask, args=(port, f"score/{step}/{n}")) for n in range(at_a_time)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kit.step(step)


if __name__ == "__main__":
    serve() if sys.argv[1] == "serve" else main()
