"""A reward server takes one connection after the other (`multiprocessing.connection.Listener`); two rollouts ask it and then meet at a barrier.

Once the first rollout keeps its connection over the barrier: the server reads from it, the other is not taken. In the twin an answer is long.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Client, Listener
from multiprocessing.synchronize import Barrier

import kit


def serve() -> None:
    with Listener(("127.0.0.1", 0)) as listener:
        kit.mark("server", port=listener.address[1])
        while True:
            with listener.accept() as connection:
                try:
                    while True:
                        number, step = connection.recv()
                        kit.work(0.2)
                        if number == 1 and kit.is_late(step):
                            time.sleep(kit.LONG_S)
                        connection.send(step)
                except EOFError:
                    continue


def roll_out(number: int, meeting: Barrier) -> None:
    kit.mark(f"rollout{number}")
    port = kit.until_there("server")["port"]
    for step in range(1, 10**6):
        kit.work(0.2)
        if number == 1 and kit.differs(step):
            time.sleep(2)
        connection = Client(("127.0.0.1", port))
        connection.send((number, step))
        connection.recv()
        if number == 1 or not kit.differs(step):
            connection.close()
        meeting.wait()
        if number == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    context = multiprocessing.get_context("fork")
    meeting = context.Barrier(2)
    context.Process(target=serve).start()
    rollouts = [context.Process(target=roll_out, args=(n, meeting)) for n in range(2)]
    for one in rollouts:
        one.start()
    for one in rollouts:
        one.join()


if __name__ == "__main__":
    main()
