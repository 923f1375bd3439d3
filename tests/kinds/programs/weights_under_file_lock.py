"""A trainer writes weights to a file under its lock and tells two engines over HTTP to load them; each engine reads under a shared lock.

Once it tells them before it gives the lock back: the engines want the lock, and the trainer wants their answers. In the twin an engine
loads for long.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import kit

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Engine(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        step = int(self.path[1:])
        with (kit.folder() / "weights.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            (kit.folder() / "weights").read_bytes()
            kit.work(0.2)
        if kit.is_late(step) and sys.argv[1] == "engine1":
            time.sleep(kit.LONG_S)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def engine(name: str) -> None:
    server = HTTPServer(("127.0.0.1", 0), Engine)
    kit.mark(name, port=server.server_port)
    server.serve_forever()


def tell(name: str, step: int) -> None:
    opener.open(f"http://127.0.0.1:{kit.until_there(name)['port']}/{step}", data=b"").read()


def main() -> None:
    kit.begin()
    names = ("engine0", "engine1")
    for name in names:
        subprocess.Popen([sys.executable, __file__, name])
        kit.until_there(name)
    with ThreadPoolExecutor(2) as threads:
        for step in range(1, 10**6):
            kit.work(0.4)
            with (kit.folder() / "weights.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                (kit.folder() / "weights").write_bytes(b"w" * 100_000)
                if kit.differs(step):
                    list(threads.map(tell, names, [step] * 2))
            list(threads.map(tell, names, [step] * 2))
            kit.step(step)


if __name__ == "__main__":
    engine(sys.argv[1]) if sys.argv[1].startswith("engine") else main()
