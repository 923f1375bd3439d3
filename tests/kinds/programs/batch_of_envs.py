"""A pool of four environments that goes on as soon as three have answered; one hangs in its game, the next behind that one's lock.

The pool looks at its pipes in turns of one second. In the twin the lock is held for some seconds.
"""

import fcntl
import multiprocessing as mp
import time
from multiprocessing.connection import wait

import kit

BATCH = 3


def game(n, pipe):
    kit.mark(f"env{n}")
    while True:
        number, _action = pipe.recv()
        kit.work(0.3)
        if n in (1, 2):
            with (kit.folder() / "levels").open("a") as levels:
                fcntl.flock(levels, fcntl.LOCK_EX)
                if n == 1:
                    level(number)
        pipe.send((n, 1.0))


def level(number):
    if kit.differs(number):
        kit.mark("env1")
        with open(kit.fifo("level")) as file:
            file.read()
    if kit.is_healthy() and number % 3 == 0:
        time.sleep(5)


def batch(pipes, idle):
    """The answers of the first environments that have any."""
    answers = []
    while len(answers) < BATCH:
        for pipe in wait([p for p in pipes if p not in idle], timeout=1.0):
            answers.append(pipe.recv())
            idle.add(pipe)
    return answers


def main():
    kit.begin()
    context = mp.get_context("fork")
    pipes = []
    for n in range(4):
        ours, theirs = context.Pipe()
        context.Process(target=game, args=(n, theirs), daemon=True).start()
        theirs.close()
        pipes.append(ours)
    idle = set(pipes)
    for number in range(1, 100000):
        for pipe in idle:
            pipe.send((number, 0))
        idle.clear()
        batch(pipes, idle)
        kit.step(number)


if __name__ == "__main__":
    main()
