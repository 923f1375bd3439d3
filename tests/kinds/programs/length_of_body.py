"""Two agents ask a reward server of the standard library over HTTP, each writing the request by hand: the length of its text stands in the head.

Once an agent cuts its text after it has written the length: the server reads on for the rest, the agent waits for the answer. The other agent goes
on until it meets the first one. In the twin the lengths agree, and an answer takes long now and then.
"""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import kit


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"]))
        number = int(text.split()[0])
        kit.work(0.2)
        if kit.is_late(number):
            time.sleep(kit.LONG_S / 2)
        self.send_response(200)
        self.send_header("Content-Length", "1")
        self.end_headers()
        self.wfile.write(b"1")


def serve() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kit.mark("server", port=server.server_port)
    server.serve_forever()


def agent(name: str) -> None:
    kit.mark(f"agent{name}")
    connection = http.client.HTTPConnection("127.0.0.1", kit.until_there("server")["port"])
    for line in sys.stdin:
        number = int(line)
        text = (f"{number} " + "word " * 50).encode()
        connection.putrequest("POST", "/score")
        connection.putheader("Content-Length", str(len(text)))
        connection.endheaders(text[:100] if name == "1" and kit.differs(number) else text)
        connection.getresponse().read()
        print(number, flush=True)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    agents = [subprocess.Popen([sys.executable, __file__, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name in "01"]
    for number in range(1, 10**6):
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
        main()
