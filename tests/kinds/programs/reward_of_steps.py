"""A reward process scores answers in a pool of threads, and each answer's steps in the same pool.

As many answers as threads leave none for the steps.
"""

import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

from kit import begin, differs, folder, mark, step, work

pool = ThreadPoolExecutor(3)


def score_step(text: str) -> float:
    work(0.1)
    return len(text) / 10


def score(answer: str) -> float:
    work(0.2)
    return sum(part.result() for part in [pool.submit(score_step, text) for text in answer.split()])


def tell() -> None:
    while True:
        (folder() / "alive").write_text(str(time.time()))
        time.sleep(0.5)


def reward(pipe: Connection) -> None:
    mark("reward")
    threading.Thread(target=tell, daemon=True).start()
    while True:
        answers = pipe.recv()
        pipe.send([one.result() for one in [pool.submit(score, answer) for answer in answers]])


def main() -> None:
    begin()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=reward, args=(theirs,), daemon=True).start()
    for number in range(10**6):
        work(0.4)
        ours.send(["first then last"] * (3 if differs(number) else 2))
        ours.recv()
        step(number)


if __name__ == "__main__":
    main()
