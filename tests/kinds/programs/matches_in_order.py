"""Two players, actors of Ray, meet at a table for each match, another actor; the driver keeps their calls in a dict and collects the results.

Once it collects the first player's result before it has called the second one. In the twin the second player thinks for half a minute.
"""

from __future__ import annotations

import asyncio
import time

import kit
import ray


@ray.remote(num_cpus=0)
class Table:
    def __init__(self) -> None:
        kit.mark("table")
        self.seats: dict[int, set[str]] = {}
        self.full: dict[int, asyncio.Event] = {}

    async def sit(self, match: int, player: str) -> None:
        seats = self.seats.setdefault(match, set())
        seats.add(player)
        full = self.full.setdefault(match, asyncio.Event())
        if len(seats) == 2:
            full.set()
        await full.wait()


@ray.remote(num_cpus=0)
class Player:
    def __init__(self, name: str, table: ray.actor.ActorHandle) -> None:
        self.name, self.table = name, table

    def play(self, match: int) -> float:
        kit.mark(self.name)
        if self.name == "player1" and kit.is_late(match):
            time.sleep(kit.LONG_S)
        ray.get(self.table.sit.remote(match, self.name))
        return kit.work(0.3)


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    table = Table.remote()
    players = {f"player{n}": Player.remote(f"player{n}", table) for n in range(2)}
    for match in range(1, 10**6):
        if kit.differs(match):
            kit.mark("main")
            results = {name: ray.get(player.play.remote(match)) for name, player in players.items()}
        else:
            calls = {name: player.play.remote(match) for name, player in players.items()}
            results = {name: ray.get(calls[name]) for name in players}
        assert len(results) == 2
        kit.step(match)


if __name__ == "__main__":
    main()
