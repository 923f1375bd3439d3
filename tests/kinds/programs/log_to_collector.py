"""A rollout's threads log to a collector over TCP, by logging's own handler: who sends holds the handler's lock.

Once the collector waits for a file that nobody writes, and reads no more: a thread that reports each move fills the connection, all others wait for
its lock. In the twin the collector turns its files for long.
"""

from __future__ import annotations

import logging.handlers
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import kit


def collect() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        kit.mark("collector", port=server.getsockname()[1])
        connection, _ = server.accept()
        while True:
            connection.recv(65536)
            if (kit.folder() / "left").exists():
                kit.mark("collector")
                Path(kit.fifo("archive")).read_bytes()
            if kit.is_late(int((kit.folder() / "step").read_text() or 0) if (kit.folder() / "step").exists() else 0):
                time.sleep(kit.LONG_S)


def report(log: logging.Logger) -> None:
    while True:
        time.sleep(0.05)
        log.info("moves %s", "e2e4 " * 20_000)


def play(number: int) -> None:
    kit.work(0.2)
    kit.differs(number)


def rollout() -> None:
    kit.mark("rollout")
    log = logging.getLogger("rollout")
    log.setLevel(logging.INFO)
    at = ("127.0.0.1", int(kit.until_there("collector")["port"]))
    log.addHandler(logging.handlers.SysLogHandler(at, socktype=socket.SOCK_STREAM))  # it sends without a time limit
    threading.Thread(target=report, args=(log,), daemon=True).start()
    for number, _ in enumerate(sys.stdin, 1):
        play(number)
        log.info("episode %d", number)
        print(number, flush=True)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "collect"])
    rollouts = subprocess.Popen([sys.executable, __file__, "rollout"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for number in range(1, 10**6):
        rollouts.stdin.write("play\n")
        rollouts.stdin.flush()
        if not rollouts.stdout.readline():
            break
        kit.mark("main")
        kit.step(number)


if __name__ == "__main__":
    {"collect": collect, "rollout": rollout}.get(sys.argv[1], main)()
