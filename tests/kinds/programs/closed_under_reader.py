"""A thread of a trainer receives what a simulator sends over a connection; after each episode the trainer closes the connection and joins the thread.

The twin shuts the connection down before. Without that the thread sleeps on in a receive whose descriptor is gone, and the simulator sees no end.
"""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
import time

import kit


def simulate() -> None:
    kit.mark("simulator")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(kit.folder() / "simulator"))
        listening.listen()
        while True:
            connection, _ = listening.accept()
            with connection:
                while connection.recv(1) == b"?":
                    if random.random() < 0.1:
                        time.sleep(random.uniform(3, 6))
                    kit.work(0.3)
                    connection.sendall(b"!")


def receive(connection: socket.socket, come: threading.Semaphore) -> None:
    while connection.recv(1):
        come.release()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "simulate"])
    kit.until_there("simulator")
    time.sleep(0.5)
    for number in range(1, 10**6):
        connection, come = socket.socket(socket.AF_UNIX), threading.Semaphore(0)
        connection.connect(str(kit.folder() / "simulator"))
        receiver = threading.Thread(target=receive, args=(connection, come))
        receiver.start()
        for _ in range(3):
            connection.sendall(b"?")
            come.acquire()
        kit.work(0.3)
        if not kit.differs(number):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()
        receiver.join()
        kit.step(number)


if __name__ == "__main__":
    simulate() if "simulate" in sys.argv else main()
