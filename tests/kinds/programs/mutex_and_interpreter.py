"""Two threads of a sampler use a library in C with a mutex of its own; a trainer reads what the sampler prints.

One thread computes in Python while it has the mutex; the other asks for it without giving the interpreter's lock away, so neither goes on. In the
twin it gives that away, but some calls keep it for seconds.
"""

from __future__ import annotations

import ctypes
import random
import subprocess
import sys
import threading
import time

import kit

slow, keeps = ctypes.CDLL(None), ctypes.PyDLL(None)
mutex = ctypes.create_string_buffer(64)


def tables() -> None:
    while True:
        slow.pthread_mutex_lock(mutex)
        kit.work(0.4)
        slow.pthread_mutex_unlock(mutex)
        time.sleep(random.uniform(0.02, 0.2))


def sample() -> None:
    kit.mark("sampler")
    threading.Thread(target=tables, daemon=True).start()
    for number in range(1, 10**6):
        kit.work(0.3)
        (keeps if kit.differs(number) else slow).pthread_mutex_lock(mutex)
        (keeps if kit.differs(number) else slow).pthread_mutex_unlock(mutex)
        if kit.is_healthy() and random.random() < 0.4:
            keeps.usleep(random.randint(1_500_000, 5_000_000))
        print(number, flush=True)


def main() -> None:
    kit.begin()
    sampler = subprocess.Popen([sys.executable, __file__, "sample"], stdout=subprocess.PIPE)
    assert sampler.stdout
    for number in range(1, 10**6):
        sampler.stdout.readline()
        kit.work(0.3)
        kit.step(number)


if __name__ == "__main__":
    sample() if "sample" in sys.argv else main()
