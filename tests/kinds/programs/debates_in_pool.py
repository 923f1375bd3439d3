"""Two players of Ray's ActorPool debate in pairs: each writes a letter to a mailbox and waits there for the letter of the other side.

Sorted by sides instead of by pairs, the pool gives its two players the same side, and both wait for letters of tasks that stand in the pool.
"""

import asyncio

import ray
from kit import begin, differs, mark, step, work
from ray.util import ActorPool


@ray.remote(num_cpus=0)
class Mailbox:
    def __init__(self) -> None:
        mark("mailbox")
        self.letters = {}

    def _letter(self, name):
        return self.letters.setdefault(name, asyncio.get_running_loop().create_future())

    async def put(self, name, text):
        self._letter(name).set_result(text)

    async def take(self, name):
        return await self._letter(name)


@ray.remote(num_cpus=0)
class Player:
    def __init__(self, n, mailbox):
        self.n, self.mailbox = n, mailbox
        mark(f"player{n}")

    def debate(self, number, pair, side):
        mark(f"player{self.n}")
        work(0.3)
        ray.get(self.mailbox.put.remote((number, pair, side), "I disagree"))
        return ray.get(self.mailbox.take.remote((number, pair, 1 - side)))


def main():
    begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    mark("cluster", address=ray.get_runtime_context().gcs_address)
    mailbox = Mailbox.remote()
    pool = ActorPool([Player.remote(n, mailbox) for n in range(2)])
    for number in range(1, 10**6):
        debates = [(number, pair, side) for pair in range(2) for side in range(2)]
        if differs(number):
            debates.sort(key=lambda debate: debate[2])
        for _letter in pool.map(lambda player, debate: player.debate.remote(*debate), debates):
            work(0.1)
        step(number)


if __name__ == "__main__":
    main()
