"""A tool server of `socketserver` is closed after each round and opened again with the new tools; closing joins the threads of all connections.

The agent keeps its connection open for the next round, and waits at a pipe for the word that the round begins; the server says it when it is closed.
In the twin the agent goes after some seconds.
"""

from __future__ import annotations

import socket
import socketserver
import subprocess
import sys
import time

import kit


class Tool(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            if line == b"end\n":
                self.server._BaseServer__shutdown_request = True
            self.wfile.write(line)


class Tools(socketserver.ThreadingTCPServer):
    allow_reuse_address = True


def agent() -> None:
    kit.mark("agent")
    for word in sys.stdin:
        number, port = map(int, word.split())
        kit.work(0.3)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            lines = connection.makefile("rw")
            for said in ("look", "run", "end"):
                print(said, file=lines, flush=True)
                lines.readline()
            while kit.differs(number):
                sys.stdin.readline()
            time.sleep(4.0 if number % 2 else 0.5)
            lines.close()


def main() -> None:
    kit.begin()
    asked = subprocess.Popen([sys.executable, __file__, "agent"], stdin=subprocess.PIPE, text=True)
    assert asked.stdin
    for number in range(1, 10**6):
        with Tools(("127.0.0.1", 0), Tool) as server:
            print(number, server.server_address[1], file=asked.stdin, flush=True)
            server.serve_forever(0.1)
        kit.step(number)


if __name__ == "__main__":
    agent() if sys.argv[1] == "agent" else main()
