"""A replay server greets whoever connects with a challenge, one after the other, and then serves their requests in a thread each.

A probe connects to see whether the port is open, and keeps the connection: the server waits for its answer to the challenge, and the next writer
waits for its greeting. In the twin the probe closes after some seconds.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Client, Connection, Listener

import kit

KEY = b"replay"


def answer(connection: Connection) -> None:
    try:
        while True:
            connection.send(connection.recv())
    except EOFError:
        connection.close()


def serve() -> None:
    with Listener(("127.0.0.1", 0), backlog=16) as listener:
        kit.mark("server", port=listener.address[1])
        listener._authkey = KEY
        while True:
            try:
                connection = listener.accept()
            except (OSError, EOFError):
                continue
            threading.Thread(target=answer, args=(connection,), daemon=True).start()


def probe(port: int) -> None:
    kit.mark("probe")
    for number in range(1, 10**6):
        with socket.create_connection(("127.0.0.1", port)):
            while kit.differs(number + 1):
                time.sleep(3600)
            time.sleep(3.0)
        time.sleep(1.0)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    port = kit.until_there("server")["port"]
    subprocess.Popen([sys.executable, __file__, "probe", str(port)])
    for number in range(1, 10**6):
        with Client(("127.0.0.1", port), authkey=KEY) as writer:
            for sample in range(5):
                writer.send(sample)
                writer.recv()
        kit.work(0.5)
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    elif sys.argv[1] == "probe":
        probe(int(sys.argv[2]))
    else:
        main()
