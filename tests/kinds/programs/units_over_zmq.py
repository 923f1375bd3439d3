"""An actor stores samples; a thread of it answers requests by ZeroMQ, while its method waits for the rollouts of the step with Ray.

Once the thread needs the lock that the method has while it waits: the rollouts wait for the thread. In the twin the thread sorts for long.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import kit
import ray


@ray.remote(num_cpus=0)
class Store:
    def __init__(self) -> None:
        kit.mark("store")
        self.lock = threading.Lock()
        self.step = 0
        self.address = f"ipc://{kit.folder()}/store.ipc"
        threading.Thread(target=self.serve, name="requests", daemon=True).start()

    def serve(self) -> None:
        import zmq

        requests = zmq.Context.instance().socket(zmq.REP)
        requests.bind(self.address)
        while True:
            asked = requests.recv_pyobj()
            if kit.is_late(asked):
                time.sleep(kit.LONG_S)
            with self.lock:
                requests.send_pyobj([asked] * 4)

    def where(self) -> str:
        return self.address

    def fill(self, step: int, rollouts: list[Any]) -> int:
        if kit.differs(step):
            with self.lock:
                ray.get([one.generate.remote(step) for one in rollouts])
        else:
            ray.get([one.generate.remote(step) for one in rollouts])
        return step


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, number: int, address: str) -> None:
        import zmq

        kit.mark(f"rollout{number}")
        self.store = zmq.Context.instance().socket(zmq.REQ)
        self.store.connect(address)

    def generate(self, step: int) -> int:
        kit.work(0.2)
        self.store.send_pyobj(step)
        return len(self.store.recv_pyobj())


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    store: Any = Store.remote()
    address = ray.get(store.where.remote())
    rollouts: list[Any] = [Rollout.remote(n, address) for n in range(2)]
    for step in range(1, 10**6):
        ray.get(store.fill.remote(step, rollouts))
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    main()
