"""Two reward servers listen at one port (SO_REUSEPORT), and the kernel deals out connections; a trainer makes a new one for each batch.

One of them, left over from an earlier run, is done with serving and uploads what it has. Connections still come to it, and nobody takes them.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time

import kit


def serve(name: str) -> None:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listening.bind(("127.0.0.1", int(os.environ["REWARDS"])))
    listening.listen(16)
    kit.mark(name)
    for number in range(1, 10**6):
        connection, _ = listening.accept()
        with connection:
            connection.recv(64)
            if random.random() < 0.15:
                time.sleep(random.uniform(3, 6))
            kit.work(0.4)
            connection.sendall(b"0.5")
        if name == "former" and kit.differs(number):
            with open(kit.fifo("upload")) as file:
                file.read()


def main() -> None:
    kit.begin()
    os.environ["REWARDS"] = str(kit.free_port())
    for name in ("former", "present"):
        subprocess.Popen([sys.executable, __file__, "serve", name])
        kit.until_there(name)
    for number in range(1, 10**6):
        with socket.create_connection(("127.0.0.1", int(os.environ["REWARDS"]))) as connection:
            connection.sendall(b"batch")
            connection.recv(64)
        kit.work(0.3)
        kit.step(number)


if __name__ == "__main__":
    serve(sys.argv[2]) if sys.argv[1] == "serve" else main()
