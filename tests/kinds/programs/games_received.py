"""A game server plays episodes of some seconds; a thread of the trainer receives them, the trainer looks twice a second whether one is there."""

from __future__ import annotations

import queue
import socket
import socketserver
import subprocess
import sys
import threading
from pathlib import Path

import kit


class Game(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for step in range(1, 10**6):
            kit.work(2)
            if kit.differs(step):
                kit.mark("game", port=self.server.server_address[1])
                self.load_level(kit.fifo("level"))
            self.wfile.write(f"{step}\n".encode())

    def load_level(self, path: str) -> str:
        return Path(path).read_text()


def receive(port: int, episodes: queue.Queue[int]) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile() as lines:
        for line in lines:
            episodes.put(int(line))


def train() -> None:
    subprocess.Popen([sys.executable, __file__, "play"])
    episodes: queue.Queue[int] = queue.Queue()
    threading.Thread(target=receive, args=(kit.until_there("game")["port"], episodes), daemon=True).start()
    kit.mark("main")
    while True:
        try:
            step = episodes.get(timeout=0.5)
        except queue.Empty:
            continue
        kit.mark("main")
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "play":
        with socketserver.TCPServer(("127.0.0.1", 0), Game) as server:
            kit.mark("game", port=server.server_address[1])
            server.serve_forever()
    else:
        kit.begin()
        train()
