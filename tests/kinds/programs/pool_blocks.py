"""Threads of a trainer share a pool of two connections to a judge; each reads a stream of grades, and may ask for a detail meanwhile.

Once both streams ask for a detail while they are open: each wants a third connection, and the pool has none. In the twin no details are wanted, and a
grade is long.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import kit
import urllib3


class Judge(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        step, number = map(int, self.path[1:].split("/"))
        kit.work(0.1)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"1")
        self.wfile.flush()
        if kit.is_late(step) and number == 1:
            time.sleep(kit.LONG_S)
        self.wfile.write(b"2")


def judge() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    kit.mark("judge", port=server.server_port)
    server.serve_forever()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "judge"])
    pool = urllib3.HTTPConnectionPool("127.0.0.1", kit.until_there("judge")["port"], maxsize=2, block=True, timeout=None)
    both = threading.Barrier(2)

    def grade(step: int, number: int) -> int:
        answer = pool.request("GET", f"/{step}/{number}", preload_content=False)
        answer.read(1)
        if kit.differs(step):
            both.wait()
            pool.request("GET", f"/{step}/9")
        answer.read()
        answer.release_conn()
        return number

    with ThreadPoolExecutor(2) as threads:
        for step in range(1, 10**6):
            list(threads.map(grade, [step] * 2, range(2)))
            kit.work(0.2)
            kit.step(step)


if __name__ == "__main__":
    judge() if sys.argv[1] == "judge" else main()
