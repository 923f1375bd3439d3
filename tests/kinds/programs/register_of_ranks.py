"""A controller makes a group of three actors anew each round; it looks by half seconds whether the first has told its address, then makes the rest.

Once the first asks the service of its node for a device before it tells the address, and the service does not answer. In the twin it loads for long.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from typing import Any

import kit
import ray


def devices() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    kit.mark("devices", port=listener.getsockname()[1])
    asked = 0
    while True:
        connection, _ = listener.accept()
        asked = int(connection.recv(16))
        if kit.differs(asked):
            kit.mark("devices")
            threading.Semaphore(0).acquire()
        connection.sendall(b"0")
        connection.close()


@ray.remote(num_cpus=0)
class Register:
    def __init__(self) -> None:
        kit.mark("register")
        self.told: str | None = None

    def tell(self, address: str | None) -> None:
        self.told = address

    def address(self) -> str | None:
        return self.told


@ray.remote(num_cpus=0)
class Worker:
    def __init__(self, rank: int, step: int, register: Any) -> None:
        kit.mark(f"rank{rank}")
        if rank == 0:
            with socket.create_connection(("127.0.0.1", kit.until_there("devices")["port"])) as service:
                service.sendall(str(step).encode())
                service.recv(1)
            if kit.is_late(step):
                time.sleep(kit.LONG_S)
            ray.get(register.tell.remote("127.0.0.1"))

    def generate(self) -> float:
        return kit.work(0.3)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "devices"])
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    register = Register.remote()
    for step in range(1, 10**6):
        kit.mark("main")
        ray.get(register.tell.remote(None))
        group = [Worker.remote(0, step, register)]
        while ray.get(register.address.remote()) is None:
            time.sleep(0.5)
        group += [Worker.remote(rank, step, register) for rank in (1, 2)]
        ray.get([one.generate.remote() for one in group])
        for one in group:
            ray.kill(one)
        kit.step(step)


if __name__ == "__main__":
    devices() if sys.argv[1] == "devices" else main()
