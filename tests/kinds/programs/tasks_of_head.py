"""A head hands tasks to workers over sockets, and selects over them all until each has brought its result.

Once it forgets to send its task to one of them. In the twin a worker takes long now and then.
"""

from __future__ import annotations

import selectors
import socket
import subprocess
import sys
import time

import kit

WORKERS = 3


def worker(number: int, descriptor: int) -> None:
    kit.mark(f"worker{number}")
    connection = socket.socket(fileno=descriptor)
    step = 0
    while connection.recv(1):
        step += 1
        kit.work(0.3)
        if number == 1 and kit.is_late(step):
            time.sleep(kit.LONG_S / 2)
            kit.work(1.0)
            time.sleep(kit.LONG_S / 2)
        connection.sendall(b"r")


def main() -> None:
    kit.begin()
    connections = []
    for number in range(WORKERS):
        ours, theirs = socket.socketpair()
        command = [sys.executable, __file__, "worker", str(number), str(theirs.fileno())]
        subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()
        connections.append(ours)
    for step in range(1, 10**6):
        kit.mark("main")
        results = selectors.DefaultSelector()
        for number, connection in enumerate(connections):
            if number != 1 or not kit.differs(step):
                connection.sendall(b"t")
            results.register(connection, selectors.EVENT_READ)
        missing = WORKERS
        while missing:
            for key, _ in results.select():
                key.fileobj.recv(1)
                missing -= 1
        results.close()
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        worker(int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
