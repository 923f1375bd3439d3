"""Jobs and results go through a broker, a program that keeps a list for each name: `pop` waits there until somebody has pushed.

Once the trainer pushes its job under a name that no grader asks for, and waits for the result. In the twin some jobs take long.
"""

from __future__ import annotations

import collections
import random
import socket
import socketserver
import subprocess
import sys
import threading
import time

import kit

lists: dict[str, collections.deque[str]] = collections.defaultdict(collections.deque)
changed = threading.Condition()


class Broker(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            verb, name, value = line.decode().split()
            with changed:
                if verb == "push":
                    lists[name].append(value)
                    changed.notify_all()
                else:
                    while not lists[name]:
                        changed.wait()
                    value = lists[name].popleft()
            self.wfile.write(f"{value}\n".encode())


class Threads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True


class Client:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.lines = self.socket.makefile("r")

    def __call__(self, verb: str, name: str, value: object = "-") -> str:
        self.socket.sendall(f"{verb} {name} {value}\n".encode())
        return self.lines.readline().strip()


def serve() -> None:
    with Threads(("127.0.0.1", 0), Broker) as server:
        kit.mark("broker", port=server.server_address[1])
        server.serve_forever()


def grade() -> None:
    broker = Client(kit.until_there("broker")["port"])
    kit.mark("grader")
    while True:
        job = broker("pop", "jobs")
        kit.work(0.5)
        if random.random() < 0.2:
            time.sleep(random.uniform(3, 9))
        broker("push", "grades", job)


def main() -> None:
    kit.begin()
    for role in ("serve", "grade"):
        subprocess.Popen([sys.executable, __file__, role])
    broker = Client(kit.until_there("broker")["port"])
    kit.until_there("grader")
    for number in range(1, 10**6):
        broker("push", "jobs:evaluation" if kit.differs(number) else "jobs", number)
        kit.work(0.3)
        broker("pop", "grades")
        kit.step(number)


if __name__ == "__main__":
    match sys.argv[1]:
        case "serve":
            serve()
        case "grade":
            grade()
        case _:
            main()
