"""Programs behind the cases of descriptors, without Ray: ``python tests/cases/descriptors.py leaks`` or another of `KINDS`.

A trainer asks a reward service, whose limit of open files is low. In ``leaks`` the service keeps the connections of clients that have gone
until it can accept no more; in ``coroutines`` an asyncio server does so, in ``spins`` one of the standard library, whose loop tries again at
once; in ``files`` it opens a file for each sample and closes none. Look-alikes: in ``below`` it has leaked as much and may open more, and its
answer waits for a lock; in ``pooled`` its clients fill its limit with connections that they use, and it goes on; in ``turnover`` it is full,
answers one client after the other and closes; in ``unasked`` it is full, and nobody waits for it. Prints the launcher's pid when that is
reached, and stays until stdin closes. Then: ``rayrl-debug snapshot --pid PID -o DIR``, which takes its children as well, and ``store.py``.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import socketserver
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing import Event, Pipe, Process
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event as EventType

LIMIT = 96
ROOMY = 512
FEW = 16
AGAIN_S = 0.5
TURN_S = 0.05
"""What the service takes for an answer where it answers all the time."""


def listens(port: Connection, limit: int = LIMIT) -> socket.socket:
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    port.send(listening.getsockname()[1])
    return listening


def accepts(listening: socket.socket, serves: Callable[[socket.socket], None]) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            time.sleep(AGAIN_S)
            continue
        serves(connection)


def leaks(port: Connection) -> None:
    kept = []

    def scores(connection: socket.socket) -> None:
        connection.sendall(connection.recv(64))
        kept.append(connection)

    accepts(listens(port), scores)


def coroutines(port: Connection) -> None:
    kept = []

    async def scores(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(64))
        await writer.drain()
        kept.append(writer)

    async def serves() -> None:
        server = await asyncio.start_server(scores, sock=listens(port))
        await server.serve_forever()

    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - asyncio reports each try
    asyncio.run(serves())


def spins(port: Connection) -> None:
    class Scores(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(self.request.recv(64))

    class Server(socketserver.TCPServer):
        def shutdown_request(self, request: object) -> None:
            kept.append(request)

    kept: list[object] = []
    listening = listens(port)
    server = Server(listening.getsockname(), Scores, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    server.serve_forever()


def files(port: Connection) -> None:
    """One connection, on which all requests come; a file for each."""
    kept = []
    folder = tempfile.mkdtemp(prefix="samples-")
    connection, _ = listens(port).accept()
    for number in range(1 << 20):
        text = connection.recv(64)
        while True:
            try:
                kept.append(open(f"{folder}/{number}.json", "w"))  # noqa: SIM115
                break
            except OSError:
                time.sleep(AGAIN_S)
        connection.sendall(text)


def below(port: Connection) -> None:
    kept, lock = [], threading.Lock()

    def scores(connection: socket.socket) -> None:
        text = connection.recv(64)
        kept.append(connection)
        if text == b"last":
            with lock, lock:  # taken twice: never
                pass
        connection.sendall(text)

    accepts(listens(port, ROOMY), scores)


def pooled(port: Connection) -> None:
    """A thread for each of its clients, until there is no room for one more."""

    def serves(connection: socket.socket) -> None:
        while text := connection.recv(64):
            time.sleep(TURN_S)
            connection.sendall(text)

    accepts(listens(port), lambda connection: threading.Thread(target=serves, args=(connection,), daemon=True).start())


def turnover(port: Connection) -> None:
    """Answers the oldest of its clients when it can take no more, and closes."""
    kept: list[socket.socket] = []
    listening = listens(port, FEW)
    while True:
        try:
            while True:
                kept.append(listening.accept()[0])
        except OSError:
            time.sleep(TURN_S)
            oldest = kept.pop(0)
            oldest.sendall(oldest.recv(64))
            oldest.close()


def asks(number: int, text: bytes, *, patience_s: float | None = None) -> bool:
    """One request on a connection of its own; False if no answer came in time."""
    with socket.create_connection(("127.0.0.1", number), timeout=patience_s) as connection:
        connection.sendall(text)
        try:
            return connection.recv(64) == text
        except TimeoutError:
            return False


def waits(number: int, begun: EventType) -> None:
    """The trainer: it has sent its request, and waits for the answer."""
    with socket.create_connection(("127.0.0.1", number)) as connection:
        connection.sendall(b"last")
        begun.set()
        connection.recv(64)


def asks_on(number: int, begun: EventType) -> None:
    """The trainer of ``files``: all requests on one connection."""
    with socket.create_connection(("127.0.0.1", number)) as connection:
        for turn in range(1 << 20):
            if turn == LIMIT // 2:
                begun.set()
            connection.sendall(b"sample")
            connection.recv(64)


def goes_on(number: int, begun: EventType) -> None:
    """The trainer of ``pooled``, with as many connections as the service can take."""
    pool: list[socket.socket] = []
    while True:
        one = socket.create_connection(("127.0.0.1", number), timeout=2.0)
        one.sendall(b"first")
        try:
            one.recv(64)
        except TimeoutError:
            break
        pool.append(one)
    begun.set()
    while True:
        for one in pool:
            one.settimeout(None)
            one.sendall(b"next")
            one.recv(64)


def asks_again(number: int, begun: EventType) -> None:
    """One of the trainers of ``turnover``."""
    while True:
        asks(number, b"next")
        begun.set()


def forward() -> None:
    time.sleep(0.2)


def backward() -> None:
    time.sleep(0.3)


def works_alone(number: int, begun: EventType) -> None:
    """The trainer of ``unasked``: it has its rewards, and trains."""
    begun.set()
    while True:
        forward()
        backward()


KINDS: dict[str, tuple[Callable[[Connection], None], Callable[[int, EventType], None]]] = {
    "leaks": (leaks, waits),
    "coroutines": (coroutines, waits),
    "spins": (spins, waits),
    "files": (files, asks_on),
    "below": (below, waits),
    "pooled": (pooled, goes_on),
    "turnover": (turnover, asks_again),
    "unasked": (leaks, works_alone),
}


def ends_with_stdin(started: list[Process]) -> None:
    sys.stdin.read()
    for process in started:
        process.kill()


def main(kind: str) -> None:
    serves, trains = KINDS[kind]
    os.closerange(3, 1 << 10)  # what the shell has handed on
    ours, theirs = Pipe()
    service = Process(target=serves, args=(theirs,), name="reward_service", daemon=True)
    service.start()
    theirs.close()
    number = ours.recv()
    most = LIMIT if serves is below else 1 << 10
    while trains in (waits, works_alone) and most and asks(number, b"first", patience_s=2.0):
        most -= 1
    trainers = []
    for _ in range(FEW if trains is asks_again else 1):
        begun = Event()
        trainers.append(Process(target=trains, args=(number, begun), name="trainer", daemon=True))
        trainers[-1].start()
        if trains is not asks_again:
            begun.wait()
    threading.Thread(target=ends_with_stdin, args=([service, *trainers],), daemon=True).start()
    time.sleep(3.0)
    print(os.getpid(), flush=True)
    for trainer in trainers:
        trainer.join()


if __name__ == "__main__":
    main(sys.argv[1])
