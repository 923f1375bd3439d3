"""A trainer asks an engine over HTTP to generate until it says stop; the engine does one request of each kind at a time.

Once the engine has one lock for all kinds: the word to stop waits for the generation that it should stop. In the twin stopping takes half a minute.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kit

LOCKS = {"generate": threading.Lock(), "stop": threading.Lock()}
STOPPED = threading.Event()


class Engine(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        _, kind, number = self.path.split("/")
        with LOCKS["generate" if kit.differs(int(number)) else kind]:
            if kind == "generate":
                STOPPED.wait()
                STOPPED.clear()
            else:
                if kit.is_late(int(number)):
                    time.sleep(kit.LONG_S)
                STOPPED.set()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def serve() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    kit.mark("engine", port=server.server_port)
    server.serve_forever()


def ask(kind: str, step: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{kit.until_there('engine')['port']}/{kind}/{step}") as answer:
        return bytes(answer.read())


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    kit.until_there("engine")
    pool = ThreadPoolExecutor(2)
    for step in range(1, 10**6):
        generation = pool.submit(ask, "generate", step)
        time.sleep(0.3)
        kit.work(0.3)
        if kit.differs(step):
            kit.mark("main")
        ask("stop", step)
        generation.result()
        kit.step(step)


if __name__ == "__main__":
    serve() if sys.argv[1] == "serve" else main()
