"""A trainer steps in its main thread and writes statistics in another; both lock the model's state with a lock that readers share.

The shared lock lets a writer wait for all readers; a reader that reads again inside of its reading waits for the waiting writer. In the twin the
statistics take long.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import kit


class Shared:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.readers = self.writers = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self.changed:
            self.changed.wait_for(lambda: not self.writers)
            self.readers += 1
        try:
            yield
        finally:
            with self.changed:
                self.readers -= 1
                self.changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self.changed:
            self.writers += 1
            self.changed.wait_for(lambda: not self.readers)
        try:
            yield
        finally:
            with self.changed:
                self.writers -= 1
                self.changed.notify_all()


def statistics(state: Shared) -> None:
    for number in range(1, 10**6):
        with state.reading():
            time.sleep(0.5)
            if kit.is_healthy() and number % 3 == 0:
                time.sleep(6.0)
            if kit.differs(number):
                time.sleep(2.0)
                with state.reading():
                    time.sleep(0.1)
        time.sleep(0.1)


def main() -> None:
    kit.begin()
    state = Shared()
    threading.Thread(target=statistics, args=(state,), daemon=True).start()
    for number in range(1, 10**6):
        kit.work(0.5)
        with state.writing():
            time.sleep(0.2)
        kit.step(number)


if __name__ == "__main__":
    main()
