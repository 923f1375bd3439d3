"""Answers are graded by tasks of Ray that are tried again whenever they raise. One answer makes its task raise each time.

The trainer waits for the grades of the batch. In the twin a task raises now and then, and is through at the second try.
"""

import kit
import ray


@ray.remote(num_cpus=1, max_retries=-1, retry_exceptions=True)
def grade(answer: int, number: int) -> int:
    kit.work(0.3)
    tried = kit.folder() / f"tried{number}-{answer}"
    if answer == 1 and (kit.differs(number) or (number % 3 == 0 and not tried.exists())):
        tried.touch()
        raise ValueError("no answer between the tags")
    return answer


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self) -> None:
        kit.mark("trainer")

    def update(self, number: int) -> None:
        ray.get([grade.remote(answer, number) for answer in range(3)])
        kit.step(number)


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    trainer = Trainer.remote()
    for number in range(1, 10**6):
        ray.get(trainer.update.remote(number))


if __name__ == "__main__":
    main()
