"""A server of weights is opened anew for each step: it loads them and then listens; two rollouts try to connect again and again, with growing pauses.

Before it listens it waits for both rollouts to tell that they are there, which they do once they are connected. In the twin it loads for long.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import socket
import time
from multiprocessing.connection import Connection

import kit


def serve(port: int, orders: Connection, rollouts: list[Connection]) -> None:
    while True:
        step = orders.recv()
        kit.mark("server")
        kit.in_c(kit.LONG_S if kit.is_late(step) else 0.3)
        if kit.differs(step):
            for one in rollouts:
                one.recv()
        with socket.create_server(("127.0.0.1", port)) as listener:
            for _ in rollouts:
                client, _ = listener.accept()
                with client:
                    client.sendall(b"weights" * 100)
            for one in rollouts:
                one.recv()
        orders.send(step)


def connected(port: int) -> socket.socket:
    pause = 0.1
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port))
        time.sleep(pause)
        pause = min(2 * pause, 6.0)


def roll_out(number: int, port: int, orders: Connection, server: Connection) -> None:
    while True:
        step = orders.recv()
        kit.mark(f"rollout{number}")
        with connected(port) as weights:
            server.send(number)
            while weights.recv(4096):
                pass
        kit.work(0.2)
        orders.send(step)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    where = kit.free_port()
    there, orders = [], []
    for n in range(2):
        hears, tells = spawn.Pipe(duplex=False)
        ours, theirs = spawn.Pipe()
        spawn.Process(target=roll_out, args=(n, where, theirs, tells), daemon=True).start()
        theirs.close()
        tells.close()
        there.append(hears)
        orders.append(ours)
    ours, theirs = spawn.Pipe()
    spawn.Process(target=serve, args=(where, theirs, there), daemon=True).start()
    theirs.close()
    orders.append(ours)
    for step in range(1, 10**6):
        for one in orders:
            one.send(step)
        for one in orders:
            one.recv()
        kit.step(step)
