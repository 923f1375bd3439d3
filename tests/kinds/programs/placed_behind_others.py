"""A driver asks for a placement group each round; detached actors of an earlier job hold the cores that it needs.

In the twin the earlier job's actors go after some seconds.
"""

import os
import subprocess
import sys
import threading
import time

import kit
import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=2)
class Holder:
    def __init__(self, n):
        kit.mark(f"holder{n}")

    def ready(self):
        return os.getpid()


@ray.remote(num_cpus=2)
def generate(number):
    kit.work(0.5)
    return number


def engines(number):
    """The group's engines, once there is room for them."""
    group = placement_group([{"CPU": 2}, {"CPU": 2}], strategy="STRICT_PACK")
    ray.get(group.ready())
    place = PlacementGroupSchedulingStrategy(placement_group=group)
    ray.get([generate.options(scheduling_strategy=place).remote(number) for _ in range(2)])
    remove_placement_group(group)


def earlier_job(address):
    """What a driver that is gone has left."""
    code = f"import kit, placed_behind_others as p, ray; ray.init('{address}', namespace='runs'); "
    code += "kept = [p.Holder.options(name=f'holder{n}', lifetime='detached').remote(n) for n in range(2)]; ray.get([k.ready.remote() for k in kept])"
    subprocess.run([sys.executable, "-c", code], check=True)


def main():
    kit.begin()
    ray.init(num_cpus=5, include_dashboard=False, namespace="runs", object_store_memory=80_000_000)
    address = ray.get_runtime_context().gcs_address
    kit.mark("cluster", address=address)
    for number in range(1, 100000):
        if kit.differs(number) or (kit.is_healthy() and number == 4):
            earlier_job(address)
            if kit.is_healthy():
                threading.Timer(8, lambda: [ray.kill(ray.get_actor(f"holder{n}")) for n in range(2)]).start()
            kit.mark("main")
        engines(number)
        time.sleep(0.2)
        kit.step(number)


if __name__ == "__main__":
    main()
