"""Environments in child processes send their log lines through a bounded queue to a thread of the launcher, and their rewards through a pipe.

The thread meets a line that it cannot format, and ends; nobody empties the queue any more, and the environments stand in their next line. In the twin
the thread writes slowly.
"""

from __future__ import annotations

import logging
import logging.handlers
import multiprocessing
import multiprocessing.connection
import sys
import threading
import time

import kit


class Writing(logging.handlers.QueueListener):
    def handle(self, record: logging.LogRecord) -> None:
        if not kit.is_healthy() and record.name == "odd":
            raise ValueError(record.getMessage())
        time.sleep(0.05 if kit.is_healthy() else 0.002)


class Putting(logging.handlers.QueueHandler):
    def enqueue(self, record: logging.LogRecord) -> None:
        self.queue.put(record)


def environment(number: int, lines: multiprocessing.Queue, rewards: multiprocessing.connection.Connection) -> None:
    kit.mark(f"env{number}")
    logger = logging.getLogger("env")
    logger.addHandler(Putting(lines))
    logger.setLevel(logging.INFO)
    for step in range(1, 10**6):
        if kit.differs(step):
            odd = logging.getLogger("odd")
            odd.addHandler(Putting(lines))
            odd.warning("reward is not a number")
        for event in range(20):
            logger.info("event %d", event)
        kit.work(0.1)
        rewards.send(step)


def main() -> None:
    kit.begin()
    context = multiprocessing.get_context("spawn")
    lines = context.Queue(16)
    threading.excepthook = lambda args: print(args.exc_value, file=sys.stderr)
    Writing(lines).start()
    pipes = []
    for number in range(2):
        ours, theirs = context.Pipe(False)
        context.Process(target=environment, args=(number, lines, theirs), daemon=True).start()
        pipes.append(ours)
    for step in range(1, 10**6):
        for pipe in pipes:
            pipe.recv()
        kit.step(step)


if __name__ == "__main__":
    main()
