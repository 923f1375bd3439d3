"""A sampler puts episodes into a folder, one file each; the trainer looks there, takes three at a time and leaves the number of its weights."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import kit


def sample() -> None:
    kit.mark("sampler")
    for step in range(1, 10**6):
        weights = kit.folder() / "weights"
        while int(weights.read_text() or 0) < step - 2:
            time.sleep(0.1)
        for n in range(3):
            kit.work(0.5)
            if n == 1 and kit.differs(step):
                kit.mark("sampler")
                with open(kit.fifo("game")) as game:
                    game.readline()
            made = kit.folder() / "inbox" / f".{step}-{n}"
            made.write_text("episode " * 50)
            made.rename(made.with_name(f"{step}-{n}.episode"))


def take(inbox: Path, count: int) -> None:
    found: list[Path] = []
    while len(found) < count:
        time.sleep(0.2)
        found = sorted(inbox.glob("*.episode"))[:count]
    for file in found:
        file.unlink()


if __name__ == "__main__":
    if "sample" in sys.argv:
        sample()
    else:
        kit.begin()
        (kit.folder() / "inbox").mkdir()
        (kit.folder() / "weights").write_text("0")
        sampler = subprocess.Popen([sys.executable, __file__, "sample"])
        for step in range(1, 10**6):
            take(kit.folder() / "inbox", 3)
            kit.work()
            (kit.folder() / "weights").write_text(str(step))
            kit.step(step)
