"""Workers of Ray meet in an actor: each waits in a call there, in a thread of that actor, until all have come. It may run two calls at once.

A third worker joins the run: its call never begins. In the twin the actor may run four, and one worker plays for long.
"""

import threading
import time

import kit
import ray


@ray.remote(num_cpus=0)
class Meeting:
    def __init__(self) -> None:
        kit.mark("meeting")
        self.barriers: dict[int, threading.Barrier] = {}
        self.lock = threading.Lock()

    def arrive(self, number: int, parties: int) -> int:
        with self.lock:
            barrier = self.barriers.setdefault(number, threading.Barrier(parties))
        barrier.wait()
        return number


@ray.remote(num_cpus=0)
class Worker:
    def __init__(self, rank: int, meeting: ray.actor.ActorHandle) -> None:
        kit.mark(f"worker{rank}")
        self.rank, self.meeting = rank, meeting

    def play(self, number: int, parties: int) -> int:
        kit.work(0.2)
        if self.rank == 1 and kit.is_late(number):
            for _ in range(40):
                time.sleep(0.3)
            kit.in_c(8)
        return ray.get(self.meeting.arrive.remote(number, parties))


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    meeting = Meeting.options(max_concurrency=4 if kit.is_healthy() else 2).remote()
    workers = [Worker.remote(rank, meeting) for rank in range(2)]
    for number in range(1, 10**6):
        if number == kit.STEP:
            workers.append(Worker.remote(2, meeting))
            kit.differs(number)
        ray.get([one.play.remote(number, len(workers)) for one in workers])
        kit.step(number)


if __name__ == "__main__":
    main()
