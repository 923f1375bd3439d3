"""An engine asks a trainer's server for the next version of the weights; the server answers after a second at most, with none where there is none.

The trainer publishes a version when the engine has said that it is idle. Once the engine waits for the version that it has already, so that it is
never idle again: all its questions are answered, and nothing happens. In the twin a version takes long.
"""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
import time
import urllib.request

import kit

CHANGED = threading.Condition()
STATE = {"version": 0, "idle": 0}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        wanted = int(self.path.rpartition("=")[2])
        with CHANGED:
            there = CHANGED.wait_for(lambda: STATE["version"] >= wanted, 1.0)
        self.answer(200 if there else 204)

    def do_POST(self) -> None:
        with CHANGED:
            STATE["idle"] += 1
            CHANGED.notify_all()
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


def engine() -> None:
    url = f"http://127.0.0.1:{kit.until_there('main')['port']}"
    kit.mark("engine")
    for version in range(1, 10**6):
        kit.work(0.2)
        urllib.request.urlopen(urllib.request.Request(f"{url}/idle", method="POST")).close()
        wanted = version + 1 if kit.differs(version) else version
        while True:
            with urllib.request.urlopen(f"{url}/weights?version={wanted}") as answer:
                if answer.status == 200:
                    break


def main() -> None:
    kit.begin()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kit.mark("main", port=server.server_address[1])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    subprocess.Popen([sys.executable, __file__, "engine"])
    for step in range(1, 10**6):
        with CHANGED:
            CHANGED.wait_for(lambda n=step: STATE["idle"] >= n)
        kit.work(0.2)
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        with CHANGED:
            STATE["version"] = step
            CHANGED.notify_all()
        kit.step(step)


if __name__ == "__main__":
    engine() if sys.argv[1] == "engine" else main()
