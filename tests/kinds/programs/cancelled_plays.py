"""A driver takes the first two of three plays, cancels the third one and waits until it has ended. Rollouts are actors of coroutines.

A play takes the cancellation for a fault of its tool and waits for it once more. In the twin it tidies up its sandbox for long, and then ends.
"""

import asyncio

import kit
import ray


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, rank: int) -> None:
        kit.mark(f"rollout{rank}")
        self.rank = rank

    async def play(self, number: int) -> int:
        if self.rank < 2:
            await asyncio.sleep(kit.pause() / 2)
            return number
        while True:
            tool = asyncio.Event()
            try:
                await tool.wait()
            except asyncio.CancelledError:
                if not kit.differs(number):
                    if kit.is_late(number):
                        for _ in range(10):
                            await asyncio.sleep(2)
                    raise


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    rollouts = [Rollout.remote(rank) for rank in range(3)]
    for number in range(1, 10**6):
        plays = [one.play.remote(number) for one in rollouts]
        _, late = ray.wait(plays, num_returns=2)
        for play in late:
            ray.cancel(play)
            try:
                ray.get(play)
            except (ray.exceptions.TaskCancelledError, ray.exceptions.RayTaskError):
                pass
        kit.step(number)


if __name__ == "__main__":
    main()
