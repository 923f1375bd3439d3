"""A driver steers three rollouts from a pool of threads; each thread waits for its rollout's answer, then all threads meet before the weights change.

Once the pool has two threads for three rollouts: two wait at the meeting for the third, whose job is not begun. All actors are idle. In the twin the
pool is large enough, and one rollout's answer is once long.
"""

import concurrent.futures
import threading
import time

import kit
import ray

ROLLOUTS = 3


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, n: int) -> None:
        self.n = n
        kit.mark(f"rollout{n}")

    def play(self, number: int) -> int:
        kit.work(0.3)
        if kit.is_healthy() and number > 2 and self.n == 1:
            time.sleep(12)
        return number

    def update(self, number: int) -> int:
        kit.work(0.1)
        return number


def steer(rollout: "ray.actor.ActorHandle", number: int, meeting: threading.Barrier) -> int:
    played: int = ray.get(rollout.play.remote(number))
    meeting.wait()
    ray.get(rollout.update.remote(number))
    return played


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    rollouts = [Rollout.remote(n) for n in range(ROLLOUTS)]
    for number in range(1, 10**6):
        meeting = threading.Barrier(ROLLOUTS)
        with concurrent.futures.ThreadPoolExecutor(2 if kit.differs(number) else ROLLOUTS) as pool:
            jobs = [pool.submit(steer, rollout, number, meeting) for rollout in rollouts]
            for job in concurrent.futures.as_completed(jobs):
                job.result()
        kit.step(number)


if __name__ == "__main__":
    main()
