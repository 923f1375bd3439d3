"""A small training run on Ray that gets stuck: ``training_program.py ADDRESS RANKS STEPS``. The last rank never comes back from the last update.

Ends when standard input closes.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import ray


class WorkerDict:
    """One rank."""

    def pid(self) -> int:
        return os.getpid()

    def generate_sequences(self) -> None:
        time.sleep(0.05)

    def update_actor(self, is_stuck: bool) -> None:
        time.sleep(3600 if is_stuck else 0.02)

    def update_weights(self) -> None:
        time.sleep(0.01)


def main() -> None:
    address, ranks, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    workers = [ray.remote(WorkerDict).options(num_cpus=0, name=f"rank{i}", scheduling_strategy="SPREAD").remote() for i in range(ranks)]
    pids = ray.get([w.pid.remote() for w in workers])
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    for step in range(steps):
        ray.get([w.generate_sequences.remote() for w in workers])
        if step == steps - 1:
            refs = [w.update_actor.remote(w is workers[-1]) for w in workers]
            ray.get(refs[:-1])
            print(json.dumps({"driver": os.getpid(), "pids": pids}), flush=True)
            ray.get(refs)
        ray.get([w.update_actor.remote(False) for w in workers])
        ray.get([w.update_weights.remote() for w in workers])


if __name__ == "__main__":
    main()
