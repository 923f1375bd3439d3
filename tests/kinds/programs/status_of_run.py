"""A service trains in a thread and tells its state over HTTP; a controller asks for it twice a second."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kit
import requests

STEP = {"step": 0}


class Status(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"state": "training", **STEP}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Trainer:
    def __init__(self) -> None:
        self.weights = threading.Lock()

    def train(self) -> None:
        for step in range(1, 10**6):
            with self.weights:
                kit.work()
                if kit.differs(step):
                    self.save()
            STEP["step"] = step

    def save(self) -> None:
        kit.mark("service")
        with self.weights:
            kit.work(0.1)


def serve() -> None:
    threading.Thread(target=Trainer().train, name="training", daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Status)
    kit.mark("service", port=server.server_address[1])
    server.serve_forever()


def control() -> None:
    subprocess.Popen([sys.executable, __file__, "serve"])
    address = f"http://127.0.0.1:{kit.until_there('service')['port']}"
    seen = 0
    while True:
        step = requests.get(f"{address}/status").json()["step"]
        if step > seen:
            kit.step(step)
            seen = step
        time.sleep(0.5)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        control()
