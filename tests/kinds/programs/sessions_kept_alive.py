"""A reward server serves its connections in two threads, each connection until it ends; agents keep theirs for their next question.

A third agent begins: its connection is accepted, and no thread is free for it, while the first two wait for the word that all three are through.
In the twin there are three threads, and one answer takes long.
"""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import kit


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        number = int(self.path.rpartition("/")[2])
        kit.work(0.1)
        if kit.is_late(number) and self.path.startswith("/1/"):
            time.sleep(kit.LONG_S / 2)
            kit.in_c(7)
        self.send_response(200)
        self.send_header("Content-Length", "1")
        self.end_headers()
        self.wfile.write(b"1")


class Server(HTTPServer):
    threads = ThreadPoolExecutor(4)

    def process_request(self, request: Any, address: Any) -> None:
        self.threads.submit(self.serve, request, address)

    def serve(self, request: Any, address: Any) -> None:
        try:
            self.finish_request(request, address)
        finally:
            self.shutdown_request(request)


def serve() -> None:
    Server.threads = ThreadPoolExecutor(3 if kit.is_healthy() else 2)
    server = Server(("127.0.0.1", 0), Handler)
    kit.mark("server", port=server.server_port)
    server.serve_forever()


def agent(name: str) -> None:
    kit.mark(f"agent{name}")
    connection = http.client.HTTPConnection("127.0.0.1", kit.until_there("server")["port"])
    for line in sys.stdin:
        connection.request("GET", f"/{name}/{line.strip()}")
        connection.getresponse().read()
        print(line.strip(), flush=True)


def start(name: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, __file__, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def main() -> None:
    subprocess.Popen([sys.executable, __file__, "serve"])
    agents = [start("0"), start("1")]
    for number in range(1, 10**6):
        if number == kit.STEP:
            agents.append(start("2"))
            kit.until_there("agent2")
            kit.differs(number)
        for one in agents:
            one.stdin.write(f"{number}\n")
            one.stdin.flush()
        for one in agents:
            one.stdout.readline()
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    elif len(sys.argv[1]) == 1:
        agent(sys.argv[1])
    else:
        kit.begin()
        main()
