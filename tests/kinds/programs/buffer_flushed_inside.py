"""A buffer of samples writes itself out when it is full. Its lock is taken where a sample is put, and in the method that writes.

Samples come in over a pipe from a player; a thread beside them counts, all the time, and another one beats.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time

import kit

FULL = 4


class Buffer:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.samples: list[str] = []
        self.batches = 0

    def put(self, sample: str) -> None:
        with self.lock:
            self.samples.append(sample)
            kit.work(0.1)
            if len(self.samples) < FULL:
                return
            if kit.differs(self.batches + 1):
                self.write_out()
        self.write_out()

    def write_out(self) -> None:
        with self.lock:
            (kit.folder() / "batch").write_text("".join(self.samples))
            kit.work(0.3)
            self.samples.clear()
            self.batches += 1


def count() -> None:
    text = b"x" * 4096
    while True:
        for _ in range(400):
            text = hashlib.sha256(text).digest() * 128
        (kit.folder() / "count").write_text(text[:8].hex())
        time.sleep(0.02)


def beat() -> None:
    while True:
        time.sleep(1.0)
        (kit.folder() / "beat").write_text("alive")


def play() -> None:
    kit.mark("player")
    number = 0
    while True:
        kit.work(0.2)
        number += 1
        print(f"sample {number}", flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    if sys.argv[1] == "play":
        play()
    kit.begin()
    buffer = Buffer()
    for thread in (count, beat):
        threading.Thread(target=thread, daemon=True, name=thread.__name__).start()
    player = subprocess.Popen([sys.executable, __file__, "play"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert player.stdin is not None
    assert player.stdout is not None
    for step in range(1, 10**6):
        buffer.put(player.stdout.readline())
        player.stdin.write("next\n")
        player.stdin.flush()
        kit.step(step)
