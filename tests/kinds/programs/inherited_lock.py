"""Two workers take turns at a data folder by a lock on a file, which closing the file gives back; one of them forks a helper now and then."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
from collections.abc import Iterator

import kit


@contextlib.contextmanager
def locked() -> Iterator[None]:
    with (kit.folder() / "data.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Helper:
    """A child that counts the words of what it is told."""

    def __init__(self) -> None:
        (orders, self.orders), (self.answers, answers) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.orders)
            kit.mark("helper")
            while text := os.read(orders, 100):
                kit.work(0.3)
                os.write(answers, str(len(text.split())).encode())
            os._exit(0)
        os.close(orders)
        os.close(answers)

    def count(self, text: bytes) -> bytes:
        os.write(self.orders, text)
        return os.read(self.answers, 100)

    def end(self) -> None:
        os.close(self.orders)
        os.close(self.answers)
        os.waitpid(self.pid, 0)


def run(number: int) -> None:
    helper: Helper | None = None
    for step in range(1, 10**6):
        kit.mark(f"worker{number}")
        if number == 0 and helper is not None:
            helper.end()
            helper = None
        is_early = number == 0 and kit.differs(step)
        with locked():
            if is_early:
                helper = Helper()
            kit.work(0.6)
        if number == 0:
            helper = helper or Helper()
            for _ in range(2):
                with locked():
                    helper.count(b"some words to count")
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=run, args=(number,)) for number in range(2)]
    for process in workers:
        process.start()
    for process in workers:
        process.join()
