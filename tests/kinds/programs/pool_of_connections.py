"""Threads of a driver share a pool of two connections to a broker: players push episodes, a trainer's threads take them, in a call that waits.

Usually one thread takes. Once a second one begins to take as well: both connections are used by those who wait, and the player waits for a
connection. In the twin the pool has three, and an episode takes long.
"""

from __future__ import annotations

import queue
import socket
import socketserver
import subprocess
import sys
import threading
import time

import kit


def broke() -> None:
    episodes: queue.Queue[str] = queue.Queue()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                word, _, value = line.decode().strip().partition(" ")
                if word == "push":
                    episodes.put(value)
                    self.wfile.write(b"ok\n")
                else:
                    self.wfile.write(episodes.get().encode() + b"\n")

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        kit.mark("broker", port=server.server_address[1])
        server.serve_forever()


class Pool:
    """Lends its connections; who finds none waits for one."""

    def __init__(self, port: int, size: int) -> None:
        self.free: queue.LifoQueue[socket.socket] = queue.LifoQueue(size)
        for _ in range(size):
            self.free.put(socket.create_connection(("127.0.0.1", port)))

    def ask(self, command: str) -> str:
        connection = self.free.get()
        try:
            connection.sendall(command.encode() + b"\n")
            return connection.recv(4096).decode().strip()
        finally:
            self.free.put(connection)


def main() -> None:
    subprocess.Popen([sys.executable, __file__, "broke"])
    pool = Pool(kit.until_there("broker")["port"], 3 if kit.is_healthy() else 2)
    taken: queue.Queue[int] = queue.Queue()
    played = threading.Semaphore(2)

    def play() -> None:
        for number in range(1, 10**6):
            played.acquire()
            kit.work(0.5)
            if kit.is_late(number) and number % 4 == 0:
                time.sleep(kit.LONG_S)
            pool.ask(f"push {number}")

    def take() -> None:
        while True:
            taken.put(int(pool.ask("take")))

    threading.Thread(target=play, name="player", daemon=True).start()
    threading.Thread(target=take, name="taker0", daemon=True).start()
    if kit.is_healthy():
        threading.Thread(target=take, name="taker1", daemon=True).start()
    for step in range(1, 10**6):
        taken.get()
        if kit.differs(step) and step == kit.STEP:
            threading.Thread(target=take, name="taker1", daemon=True).start()
            time.sleep(1)
        played.release()
        kit.mark("main")
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "broke":
        broke()
    else:
        kit.begin()
        main()
