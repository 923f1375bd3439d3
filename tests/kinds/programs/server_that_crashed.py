"""A scorer asks a reward server over HTTP, and tries again after a pause when nobody answers; a trainer waits for its scores.

The server crashes, and nobody starts it anew. In the twin it crashes now and then as well: a thread of the launcher looks after it.
"""

from __future__ import annotations

import http.server
import os
import random
import subprocess
import sys
import threading
import time
import urllib.request

import kit


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/crash":
            os._exit(1)
        time.sleep(random.uniform(0, 0.4))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"1.0")

    def log_message(self, *args: object) -> None:
        pass


def serve(port: int) -> None:
    kit.mark("server")
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


def score(port: int, path: str) -> float:
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
                return float(answer.read())
        except OSError:
            path = "/score"
            time.sleep(1.0)


def ask(port: int) -> None:
    kit.mark("scorer")
    for number in range(1, 10**6):
        sys.stdin.readline()
        crashes = kit.differs(number) or (kit.is_healthy() and number % 3 == 0)
        print(score(port, "/crash" if crashes else "/score"), flush=True)


def main() -> None:
    kit.begin()
    port = kit.free_port()

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, __file__, "serve", str(port)])

    def look_after(server: subprocess.Popen[bytes]) -> None:
        while True:
            time.sleep(25)
            if server.poll() is not None:
                server = start()

    server = start()
    kit.until_there("server")
    if kit.is_healthy():
        threading.Thread(target=look_after, args=(server,), daemon=True).start()
    scorer = subprocess.Popen([sys.executable, __file__, "ask", str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert scorer.stdin and scorer.stdout
    for number in range(1, 10**6):
        scorer.stdin.write("next\n")
        scorer.stdin.flush()
        scorer.stdout.readline()
        kit.work(0.2)
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    elif sys.argv[1] == "ask":
        ask(int(sys.argv[2]))
    else:
        main()
