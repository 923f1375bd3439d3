"""A sampler and a learner lock ranges of one replay file: the index at its begin, the episodes behind it, with locks that belong to the open file.

The sampler takes episodes and then the index; the learner takes them in the same order, but once in the other one. In the twin the sampler keeps
its ranges long now and then.
"""

from __future__ import annotations

import fcntl
import struct
import subprocess
import sys
import time

import kit

INDEX, EPISODES = (0, 64), (64, 4096)
SET_AND_WAIT = 38
"""F_OFD_SETLKW of Linux; its unlocking is the same call with another kind."""


def lock(file: int, kind: int, place: tuple[int, int]) -> None:
    fcntl.fcntl(file, SET_AND_WAIT, struct.pack("hhqqi4x", kind, 0, *place, 0))


def go(role: str) -> None:
    kit.mark(role)
    with (kit.folder() / "replay").open("r+b") as replay:
        for number in range(1, 10**6):
            first, second = EPISODES, INDEX
            if role == "learner" and kit.differs(number):
                first, second = INDEX, EPISODES
            lock(replay.fileno(), fcntl.F_WRLCK, first)
            if first == INDEX or (role == "sampler" and (kit.folder() / "left").exists()):
                time.sleep(1)
            kit.work(0.1)
            if role == "sampler" and kit.is_late(number):
                time.sleep(kit.LONG_S)
            lock(replay.fileno(), fcntl.F_WRLCK, second)
            replay.seek(0)
            replay.write(struct.pack("q", number))
            lock(replay.fileno(), fcntl.F_UNLCK, second)
            lock(replay.fileno(), fcntl.F_UNLCK, first)
            time.sleep(0.05)
            if role == "learner":
                kit.step(number)


def main() -> None:
    kit.begin()
    (kit.folder() / "replay").write_bytes(bytes(8192))
    children = [subprocess.Popen([sys.executable, __file__, role]) for role in ("sampler", "learner")]
    for child in children:
        child.wait()


if __name__ == "__main__":
    go(sys.argv[1]) if sys.argv[1] in ("sampler", "learner") else main()
