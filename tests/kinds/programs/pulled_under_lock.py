"""An engine's thread pulls weights from a thread of the trainer, under the lock of the model; the trainer waits for the engine's answer meanwhile.

Once the trainer's thread waits for the end of the step before it sends, and the engine's answer for the lock. In the twin sending takes long.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time

import kit


def engine() -> None:
    lock = threading.Lock()
    port = kit.until_there("trainer")["port"]

    def pull() -> None:
        weights = socket.create_connection(("127.0.0.1", port)).makefile("rwb")
        while True:
            with lock:
                weights.write(b"pull\n")
                weights.flush()
                weights.readline()
            time.sleep(0.5)

    listener = socket.create_server(("127.0.0.1", 0))
    kit.mark("engine", port=listener.getsockname()[1])
    threading.Thread(target=pull, name="pull", daemon=True).start()
    connection, _ = listener.accept()
    lines = connection.makefile("r")
    while True:
        lines.readline()
        kit.work(0.1)
        with lock:
            connection.sendall(b"text\n")


def main() -> None:
    kit.begin()
    listener = socket.create_server(("127.0.0.1", 0))
    kit.mark("trainer", port=listener.getsockname()[1])
    subprocess.Popen([sys.executable, __file__, "engine"])
    at = [1]
    ended = threading.Condition()

    def serve() -> None:
        connection, _ = listener.accept()
        lines = connection.makefile("r")
        while True:
            lines.readline()
            step = at[0]
            if kit.differs(step):
                with ended:
                    while at[0] == step:
                        ended.wait()
            if kit.is_late(step):
                time.sleep(kit.LONG_S)
            connection.sendall(b"weights\n")

    threading.Thread(target=serve, name="weights", daemon=True).start()
    connection = socket.create_connection(("127.0.0.1", kit.until_there("engine")["port"]))
    lines = connection.makefile("r")
    for step in range(1, 10**6):
        if kit.differs(step):
            time.sleep(2)
        connection.sendall(b"prompt\n")
        lines.readline()
        kit.work(0.2)
        kit.step(step)
        with ended:
            at[0] = step + 1
            ended.notify_all()


if __name__ == "__main__":
    engine() if sys.argv[1] == "engine" else main()
