"""A rollout loop asks a model in a pool of threads; a refused call is tried again after a pause that grows.

After some refusals a thread waits for the others to signal that the quota is free again, and nobody signals. In the twin it pauses for seconds.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import kit

QUOTA = threading.Event()


def ask(number: int, prompt: int) -> int:
    kit.work(0.2)
    if prompt == 1 and (kit.differs(number) or (kit.is_healthy() and number % 2)):
        if kit.is_healthy():
            time.sleep(8.0)
        else:
            QUOTA.wait()
    return prompt


def main() -> None:
    kit.begin()
    with ThreadPoolExecutor(3) as pool:
        for number in range(1, 10**6):
            list(pool.map(ask, [number] * 3, range(3)))
            kit.step(number)


if __name__ == "__main__":
    main()
