"""A reward server of http.server speaks HTTP/1.1 and serves one connection at a time. Two rollouts and an evaluator ask it, each closes its own.

The evaluator once keeps its connection open, for it will ask again some day: the server waits for that, and the rollouts are not accepted.
"""

from __future__ import annotations

import http.client
import http.server
import random
import subprocess
import sys
import time

import kit


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"]))
        kit.work(0.1)
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def serve() -> None:
    port = kit.free_port()
    server = http.server.HTTPServer(("127.0.0.1", port), Handler)
    kit.mark("server", port=port)
    server.serve_forever()


def ask(connection: http.client.HTTPConnection, text: str) -> bytes:
    connection.request("POST", "/reward", text.encode())
    return connection.getresponse().read()


def play(name: str, port: int) -> None:
    kit.mark(name)
    for step in range(1, 10**6):
        kit.work(0.3)
        connection = http.client.HTTPConnection("127.0.0.1", port)
        ask(connection, f"{name} {step}")
        connection.close()
        if name == "rollout0":
            kit.step(step)


def evaluate(port: int) -> None:
    kit.mark("evaluator")
    connections = []
    while True:
        kit.work(0.5)
        connection = http.client.HTTPConnection("127.0.0.1", port)
        ask(connection, "evaluation")
        if kit.is_healthy():
            if random.random() < 0.3:
                time.sleep(random.uniform(1, 3))
            connection.close()
            continue
        at = int((kit.folder() / "step").read_text()) if (kit.folder() / "step").exists() else 0
        if kit.differs(at):
            connections.append(connection)
            while True:
                time.sleep(600)
        connection.close()


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve()
    elif sys.argv[1] == "evaluator":
        evaluate(int(sys.argv[2]))
    elif sys.argv[1].startswith("rollout"):
        play(sys.argv[1], int(sys.argv[2]))
    else:
        kit.begin()
        children = [subprocess.Popen([sys.executable, __file__, "server"])]
        port = str(kit.until_there("server")["port"])
        children += [subprocess.Popen([sys.executable, __file__, role, port]) for role in ("rollout0", "rollout1", "evaluator")]
        for child in children:
            child.wait()
