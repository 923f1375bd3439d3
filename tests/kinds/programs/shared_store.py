"""Two programs meet in torch's store: one publishes a version of the weights after each step, the other waits for it there."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import timedelta

import kit
from torch.distributed import TCPStore


def publish(store: TCPStore) -> None:
    moved = threading.Event()
    for step in range(1, 10**6):
        kit.work()
        kit.mark("publisher")
        if kit.differs(step):
            moved.wait()
        store.set(f"version/{step}", str(step))


def follow(store: TCPStore) -> None:
    for step in range(1, 10**6):
        kit.mark("follower")
        store.get(f"version/{step}")
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] in ("publish", "follow"):
        meeting = TCPStore("127.0.0.1", int(sys.argv[2]), None, sys.argv[1] == "publish", timedelta(hours=1))
        publish(meeting) if sys.argv[1] == "publish" else follow(meeting)
    else:
        kit.begin()
        port = str(kit.free_port())
        for child in [subprocess.Popen([sys.executable, __file__, role, port]) for role in ("publish", "follow")]:
            child.wait()
