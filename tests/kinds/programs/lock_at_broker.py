"""Three rollouts share one sandbox: a lock is a key at a broker that speaks lines, in the manner of Redis; who does not get it asks again.

Once a rollout is killed while it has the key, which never ends by itself. In the twin it keeps the key long now and then.
"""

from __future__ import annotations

import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time

import kit

KEYS: dict[str, str] = {}
GUARD = threading.Lock()


class Broker(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(answer(*line.decode().split()))


def answer(what: str, key: str, value: str) -> bytes:
    with GUARD:
        if what == "DEL":
            return b":1\r\n" if KEYS.pop(key, None) else b":0\r\n"
        return b"+OK\r\n" if KEYS.setdefault(key, value) == value else b"$-1\r\n"


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def serve() -> None:
    with Server(("127.0.0.1", 0), Broker) as server:
        kit.mark("broker", port=server.server_address[1])
        server.serve_forever()


def rollout(which: str) -> None:
    kit.mark(f"rollout{which}")
    with socket.create_connection(("127.0.0.1", kit.until_there("broker")["port"])) as broker, broker.makefile("rw") as file:

        def ask(words: str) -> str:
            file.write(words + "\r\n")
            file.flush()
            return file.readline()

        for number in range(1, 10**6):
            while not ask(f"SETNX sandbox {which}").startswith("+OK"):
                time.sleep(0.1)
            kit.work(0.2)
            if which == "2" and kit.differs(number):
                os.kill(os.getpid(), signal.SIGKILL)
            if which == "2" and kit.is_late(number):
                time.sleep(kit.LONG_S)
            ask(f"DEL sandbox {which}")
            kit.work(0.1)
            if which == "1":
                kit.step(number)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    children = [subprocess.Popen([sys.executable, __file__, "rollout", which]) for which in "012"]
    for child in children:
        child.wait()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    elif sys.argv[1] == "rollout":
        rollout(sys.argv[2])
    else:
        main()
