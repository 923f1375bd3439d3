"""A leader puts a flag file there for each round, and two followers look for it. Each follower writes a line when it has seen the flag.

The leader takes the flag away after a while instead of after both lines; a follower that was late looks for it without an end.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time

import kit


def follow(n: int) -> None:
    kit.mark(f"follower{n}")
    for number in range(1, 10**6):
        flag = kit.folder() / f"go{number}"
        if n == 1 and number == kit.STEP and not kit.is_healthy():
            time.sleep(3)
        while not flag.exists():
            time.sleep(0.05)
        kit.work(0.4)
        if kit.is_healthy() and random.random() < 0.15:
            time.sleep(random.uniform(1, 3))
        print(number, flush=True)


def main() -> None:
    kit.begin()
    followers = [subprocess.Popen([sys.executable, __file__, "follow", str(n)], stdout=subprocess.PIPE) for n in range(2)]
    for n in range(2):
        kit.until_there(f"follower{n}")
    for number in range(1, 10**6):
        flag = kit.folder() / f"go{number}"
        flag.touch()
        if kit.differs(number):
            time.sleep(1)
            flag.unlink()
        for one in followers:
            assert one.stdout
            one.stdout.readline()
        flag.unlink(missing_ok=True)
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "follow":
        follow(int(sys.argv[2]))
    else:
        main()
