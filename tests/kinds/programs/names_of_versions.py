"""A trainer hands weights to an engine by files whose names tell the version; each looks for the other's file. A third removes old files.

After it was resumed the trainer names its files otherwise than the engine expects.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import kit


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.2)


def publish(path: Path, size: int) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(b"w" * size)
    unfinished.rename(path)


def train() -> None:
    for step in range(1, 10**6):
        kit.work()
        kit.mark("trainer")
        is_resumed = kit.differs(step)
        publish(kit.folder() / (f"weights_{step}.bin" if is_resumed else f"weights-{step:06d}.bin"), 100_000)
        wait_for(kit.folder() / f"loaded-{step:06d}.ok")
        kit.step(step)


def generate() -> None:
    for step in range(1, 10**6):
        kit.mark("engine")
        wait_for(kit.folder() / f"weights-{step:06d}.bin")
        kit.work(0.5)
        publish(kit.folder() / f"loaded-{step:06d}.ok", 2)


def remove_old() -> None:
    kit.mark("janitor")
    while True:
        for file in sorted(kit.folder().glob("weights-*.bin"))[:-3]:
            file.unlink()
        time.sleep(1.0)


if __name__ == "__main__":
    roles = {"trainer": train, "engine": generate, "janitor": remove_old}
    if sys.argv[1] in roles:
        roles[sys.argv[1]]()
    else:
        kit.begin()
        for child in [subprocess.Popen([sys.executable, __file__, role]) for role in roles]:
            child.wait()
