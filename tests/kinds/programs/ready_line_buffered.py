"""A trainer starts an engine each round, and waits for the line that says that it is ready; then it asks the engine once, which ends.

Once the engine does not flush that line: it waits for a connection, and the trainer for the line. In the twin it does, and takes long to load.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import kit


def engine(step: int) -> None:
    kit.mark("engine")
    listener = socket.create_server(("127.0.0.1", 0))
    kit.work(0.3)
    if kit.is_late(step):
        time.sleep(kit.LONG_S)
    print("ready", listener.getsockname()[1], flush=not kit.differs(step))
    connection, _ = listener.accept()
    connection.recv(16)
    connection.sendall(b"1")


def main() -> None:
    kit.begin()
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for step in range(1, 10**6):
        child = subprocess.Popen([sys.executable, __file__, "engine", str(step)], stdout=subprocess.PIPE, text=True, env=buffered)
        assert child.stdout is not None
        port = int(child.stdout.readline().split()[1])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"a")
            connection.recv(1)
        child.wait()
        kit.step(step)


if __name__ == "__main__":
    engine(int(sys.argv[2])) if sys.argv[1] == "engine" else main()
