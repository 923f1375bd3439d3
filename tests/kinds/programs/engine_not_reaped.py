"""A node's keeper starts inference engines; the trainer asks it for one, uses it, kills it by its pid and looks until the pid is gone.

The keeper does not wait for what it started, so the ended engine stays as a zombie and its pid is never gone. In the twin the keeper reaps, some
seconds later.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import kit


def keep() -> None:
    kit.mark("keeper")
    engines: list[subprocess.Popen[bytes]] = []
    for line in sys.stdin:
        number = int(line)
        engine = subprocess.Popen(["sleep", "100000"])
        engines.append(engine)
        print(engine.pid, flush=True)
        if kit.differs(number):
            continue
        engine.wait()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    kit.begin()
    keeper = subprocess.Popen([sys.executable, __file__, "keep"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert keeper.stdin and keeper.stdout
    for number in range(1, 10**6):
        print(number, file=keeper.stdin, flush=True)
        pid = int(keeper.stdout.readline())
        kit.work(0.5)
        if kit.is_healthy():
            subprocess.Popen(["sh", "-c", f"sleep 4; kill {pid}"])
        else:
            os.kill(pid, signal.SIGTERM)
        while is_alive(pid):
            time.sleep(0.2)
        kit.step(number)


if __name__ == "__main__":
    keep() if sys.argv[1] == "keep" else main()
