"""Files are fetched by the threads of an executor; the main program is through while they still work."""

from __future__ import annotations

import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kit

FETCHES = 3


class Files(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        step = int(self.path.removeprefix("/"))
        kit.step(step)
        if kit.differs(step):
            kit.mark("files", port=self.server.server_address[1])
            threading.Event().wait()
        kit.work(0.7)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"shard")

    def log_message(self, format: str, *args: object) -> None:
        pass


def serve() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    kit.mark("files", port=server.server_address[1])
    server.serve_forever()


def fetch_on(executor: ThreadPoolExecutor, address: str, step: int) -> None:
    def again(_: Future[object]) -> None:
        if kit.is_healthy():
            fetch_on(executor, address, step + FETCHES)

    executor.submit(urllib.request.urlopen, f"{address}/{step}").add_done_callback(again)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        subprocess.Popen([sys.executable, __file__, "serve"])
        address = f"http://127.0.0.1:{kit.until_there('files')['port']}"
        threads = ThreadPoolExecutor(2)
        for step in range(1, FETCHES + 1):
            fetch_on(threads, address, step)
        if kit.is_healthy():
            while True:
                kit.work()
