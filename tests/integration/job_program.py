"""A job whose actors, spread over the nodes, never come back: ``job_program.py ADDRESS NAME ACTORS [hook]``. Ends when standard input closes."""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


class Trainer:
    """Sleeps when called."""

    def pid(self) -> int:
        return os.getpid()

    def train(self) -> None:
        time.sleep(3600)


def main() -> None:
    address, name, count, *hook = sys.argv[1:]
    runtime_env = {"worker_process_setup_hook": hook[0]} if hook else {}
    ray.init(address=address, namespace=name, log_to_driver=False, logging_level="ERROR", runtime_env=runtime_env)
    kind = ray.remote(type(name, (Trainer,), {}))
    nodes = [NodeAffinitySchedulingStrategy(n["NodeID"], soft=False) for n in ray.nodes() if n["Alive"]]
    actors = [kind.options(num_cpus=0, name=f"{name}_{i}", scheduling_strategy=nodes[i % len(nodes)]).remote() for i in range(int(count))]
    pids = ray.get([a.pid.remote() for a in actors])
    refs = [a.train.remote() for a in actors]
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    print(json.dumps({"driver": os.getpid(), "job": ray.get_runtime_context().get_job_id(), "pids": pids}), flush=True)
    ray.get(refs)


if __name__ == "__main__":
    main()
