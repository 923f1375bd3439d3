"""A reward server forks a child for each connection, two at most; two rollouts keep a connection each and ask again and again.

Once each opens a second connection, to have a group's last answer compared, before it closes the first: the server waits for one of its children to
end, these wait for the next line. In the twin the children score long now and then.
"""

from __future__ import annotations

import socket
import socketserver
import subprocess
import sys
import time

import kit


class Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            which, number = (int(word) for word in line.split())
            kit.mark(f"child{which}")
            kit.work(0.1)
            if kit.is_late(number):
                time.sleep(kit.LONG_S)
            self.wfile.write(b"1\n")


class Server(socketserver.ForkingTCPServer):
    max_children = 2
    allow_reuse_address = True


def serve() -> None:
    with Server(("127.0.0.1", 0), Handler) as server:
        kit.mark("server", port=server.server_address[1])
        server.serve_forever()


def ask(port: int, words: str, lines: int, both: bool) -> None:
    with socket.create_connection(("127.0.0.1", port)) as first, first.makefile("rw") as file:
        for _ in range(lines):
            file.write(words + "\n")
            file.flush()
            file.readline()
        if both:
            time.sleep(2)
            ask(port, words, 1, False)


def rollout(which: str) -> None:
    kit.mark(f"rollout{which}")
    port = kit.until_there("server")["port"]
    for number in range(1, 10**6):
        ask(port, f"{which} {number}", 3, kit.differs(number))
        if which == "0":
            kit.step(number)


def main() -> None:
    kit.begin()
    children = [subprocess.Popen([sys.executable, __file__, "serve"])]
    children += [subprocess.Popen([sys.executable, __file__, "rollout", which]) for which in "01"]
    for child in children:
        child.wait()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    elif sys.argv[1] == "rollout":
        rollout(sys.argv[2])
    else:
        main()
