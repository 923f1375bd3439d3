"""Driver: joins the cluster as any program does, runs a task on every node, says where."""

import os
import sys
import time

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


@ray.remote(num_cpus=1)
def where() -> str:
    import socket

    return socket.gethostname()


def main() -> int:
    ray.init(log_to_driver=False)
    alive = [n for n in ray.nodes() if n["Alive"]]
    names = ray.get([where.options(scheduling_strategy=NodeAffinitySchedulingStrategy(n["NodeID"], soft=False)).remote() for n in alive])
    resources = ray.cluster_resources()
    print("ran on", *sorted(names), f"CPU={resources.get('CPU', 0):g}", f"GPU={resources.get('GPU', 0):g}", "arguments:", *sys.argv[1:], flush=True)
    if "stay" in sys.argv:
        print("stays", os.getpid(), flush=True)
        time.sleep(600)
    ray.shutdown()
    return int(os.environ.get("DRIVER_EXIT", "0"))


if __name__ == "__main__":
    sys.exit(main())
