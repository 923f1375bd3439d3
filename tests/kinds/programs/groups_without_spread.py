"""A driver has two samplers play groups of answers until a batch is full, and drops each group whose answers are all alike, as DAPO does.

A dropped group is tried again after a back-off, as often as allowed. Once more groups are dropped than may be tried again: no call is under way, and
the driver looks again and again for an answer. In the twin the back-off is once long, and nothing is under way meanwhile either.
"""

import time

import kit
import ray

BATCH = 4
TRIES = 3


@ray.remote(num_cpus=0)
class Sampler:
    def __init__(self, n: int) -> None:
        kit.mark(f"sampler{n}")

    def play(self, number: int, prompt: int, attempt: int) -> tuple[int, bool]:
        kit.work(0.3)
        is_alike = prompt == 1 and (attempt == 1 or kit.differs(number))
        return prompt, is_alike


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self) -> None:
        kit.mark("trainer")

    def train(self, prompts: list[int]) -> int:
        kit.work(0.3)
        return len(prompts)


class Batch:
    def __init__(self, number: int, samplers: "list[ray.actor.ActorHandle]") -> None:
        self.number, self.samplers = number, samplers
        self.tried = dict.fromkeys(range(BATCH), 0)
        self.again: list[tuple[float, int]] = [(0.0, prompt) for prompt in range(BATCH)]
        self.under_way: list[ray.ObjectRef] = []
        self.good: list[int] = []

    def send(self) -> None:
        for entry in list(self.again):
            not_before, prompt = entry
            if time.monotonic() >= not_before:
                self.again.remove(entry)
                self.tried[prompt] += 1
                self.under_way.append(self.samplers[prompt % 2].play.remote(self.number, prompt, self.tried[prompt]))

    def receive(self) -> None:
        if not self.under_way:
            time.sleep(0.25)
            return
        ready, self.under_way = ray.wait(self.under_way, timeout=0.25)
        for prompt, is_alike in ray.get(ready):
            if not is_alike:
                self.good.append(prompt)
            elif self.tried[prompt] < TRIES:
                back_off = 12.0 if kit.is_healthy() and self.number > 2 else 0.2 * self.tried[prompt]
                self.again.append((time.monotonic() + back_off, prompt))


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    samplers, trainer = [Sampler.remote(n) for n in range(2)], Trainer.remote()
    for number in range(1, 10**6):
        batch = Batch(number, samplers)
        while len(batch.good) < BATCH:
            batch.send()
            batch.receive()
        ray.get(trainer.train.remote(batch.good))
        kit.step(number)


if __name__ == "__main__":
    main()
