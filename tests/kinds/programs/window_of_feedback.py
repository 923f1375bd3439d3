"""Three collectors listen for the feedback of users; a coordinator closes each window after a while and opens the next one.

Without a limit it waits for a thread to tell that the last collector has something, and no user comes. In the twin the window has an end.
"""

from __future__ import annotations

import multiprocessing
import socket
import threading
from multiprocessing.connection import Connection, wait

import kit


def collect(number: int, listener: socket.socket, coordinator: Connection) -> None:
    kit.mark(f"collector{number}")
    while True:
        user, _ = listener.accept()
        with user:
            coordinator.send(user.recv(100))


def use(ports: list[int], windows: Connection) -> None:
    """The users give their feedback at the beginning of a window; two of the collectors hear of them in a late one."""
    while True:
        step = windows.recv()
        kit.mark("users")
        for port in ports[: 2 if step >= kit.STEP else 3]:
            kit.work(0.1)
            with socket.create_connection(("127.0.0.1", port)) as collector:
                collector.sendall(b"thumbs up")


def read(collectors: list[Connection], heard: list[bytes], complete: threading.Event) -> None:
    while True:
        for one in wait(collectors):
            heard.append(one.recv())
            if len(heard) % 3 == 0:
                complete.set()


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    ports, found = [], []
    for n in range(3):
        listening = socket.create_server(("127.0.0.1", 0))
        hears, tells = spawn.Pipe(duplex=False)
        spawn.Process(target=collect, args=(n, listening, tells), daemon=True).start()
        tells.close()
        ports.append(listening.getsockname()[1])
        listening.close()
        found.append(hears)
    opens, opened = spawn.Pipe()
    spawn.Process(target=use, args=(ports, opened), daemon=True).start()
    opened.close()
    feedback: list[bytes] = []
    closed = threading.Event()
    threading.Thread(target=read, args=(found, feedback, closed), daemon=True).start()
    for step in range(1, 10**6):
        opens.send(step)
        kit.mark("main")
        closed.wait(None if kit.differs(step) else kit.LONG_S)
        closed.clear()
        feedback.clear()
        kit.work(0.2)
        kit.step(step)
