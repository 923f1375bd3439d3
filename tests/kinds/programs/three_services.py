"""Planner, coder and critic are HTTP servers of one thread each; to answer, one asks the next."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import kit

NEXT = {"planner": "coder", "coder": "critic", "critic": "planner"}


class Role(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        step = int(self.path.removeprefix("/"))
        kit.work(0.2)
        name = sys.argv[1]
        if name != "critic" or kit.differs(step):
            kit.mark(name, port=self.server.server_address[1])
            ask(NEXT[name], step)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:
        pass


def ask(name: str, step: int) -> bytes:
    port = kit.until_there(name)["port"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{step}") as answer:
        return bytes(answer.read())


if __name__ == "__main__":
    if sys.argv[1] in NEXT:
        server = HTTPServer(("127.0.0.1", 0), Role)
        kit.mark(sys.argv[1], port=server.server_address[1])
        server.serve_forever()
    else:
        kit.begin()
        for name in NEXT:
            subprocess.Popen([sys.executable, __file__, name])
        for step in range(1, 10**6):
            kit.mark("main")
            ask("planner", step)
            kit.step(step)
