"""Four actors that meet after each round over files on a shared disk; one has not come, its map is never delivered.

The others look for its file four times a second. In the twin one round of one actor takes long.
"""

import subprocess
import sys
import time

import kit

ACTORS = 4


def meet(number, n):
    (kit.folder() / f"round{number}.{n}").touch()
    while not all((kit.folder() / f"round{number}.{other}").exists() for other in range(ACTORS)):
        time.sleep(0.25)


def play(number, n):
    kit.work(0.5)
    if n == 2 and kit.differs(number):
        kit.mark("actor2")
        with open(kit.fifo("map")) as file:
            file.read()
    if n == 2 and kit.is_healthy() and number % 3 == 0:
        for _ in range(8):
            kit.work()


def actor(n):
    kit.mark(f"actor{n}")
    for number in range(1, 100000):
        play(number, n)
        kit.mark(f"actor{n}")
        meet(number, n)
        if n == 0:
            kit.step(number)


def main():
    kit.begin()
    actors = [subprocess.Popen([sys.executable, __file__, f"{n}"]) for n in range(ACTORS)]
    for program in actors:
        program.wait()


if __name__ == "__main__":
    actor(int(sys.argv[1])) if sys.argv[1].isdigit() else main()
