"""A trainer writes the number of its version to a file; an engine, when it is asked for that version, looks into the file until it is there.

Once the trainer writes to the file of unfinished writes, and forgets to move it. In the twin it moves it late. A rollout waits for its next prompt.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import kit


def engine() -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(kit.folder() / "engine.sock"))
    server.listen()
    kit.mark("engine")
    connection, _ = server.accept()
    while wanted := connection.recv(16):
        while not is_there(int(wanted)):
            time.sleep(0.5)
        kit.work(0.2)
        connection.sendall(b"ready")


def is_there(version: int) -> bool:
    try:
        return int((kit.folder() / "version").read_text()) >= version
    except (OSError, ValueError):
        return False


def rollout() -> None:
    kit.mark("rollout")
    while sys.stdin.readline():
        kit.work(0.2)
        print("1", flush=True)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "engine"])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    rollouts = subprocess.Popen([sys.executable, __file__, "rollout"], **pipes)
    kit.until_there("engine")
    asked = socket.socket(socket.AF_UNIX)
    asked.connect(str(kit.folder() / "engine.sock"))
    for step in range(1, 10**6):
        kit.mark("main")
        kit.work(0.2)
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        unfinished = kit.folder() / "version.unfinished"
        unfinished.write_text(str(step))
        if not kit.differs(step):
            unfinished.rename(kit.folder() / "version")
        asked.sendall(str(step).encode())
        asked.recv(16)
        rollouts.stdin.write("1\n")
        rollouts.stdin.flush()
        rollouts.stdout.readline()
        kit.step(step)


if __name__ == "__main__":
    {"engine": engine, "rollout": rollout}.get(sys.argv[1], main)()
