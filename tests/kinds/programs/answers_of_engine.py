"""An engine server, an actor of Ray, has its engine as a program: prompts go into its input, answers come back through a pipe of their own.

The server has kept its copy of that pipe's other end. Once the engine dies, and the server reads on: the pipe does not end. In the twin the
engine generates for half a minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import kit
import ray


def generate() -> None:
    kit.mark("engine")
    with os.fdopen(int(sys.argv[2]), "w") as answers:
        for line in sys.stdin:
            number = int(line)
            time.sleep(kit.LONG_S if kit.is_late(number) else 0.2)
            if kit.differs(number):
                os._exit(1)
            print(number * 3, file=answers, flush=True)


@ray.remote(num_cpus=0)
class Server:
    def __init__(self) -> None:
        kit.mark("server")
        read, self.write = os.pipe()
        self.engine = subprocess.Popen([sys.executable, __file__, "engine", str(self.write)], stdin=subprocess.PIPE, text=True, pass_fds=[self.write])
        self.answers = os.fdopen(read)

    def generate(self, number: int) -> int:
        print(number, file=self.engine.stdin, flush=True)
        return int(self.answers.readline())


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, server: ray.actor.ActorHandle) -> None:
        kit.mark("rollout")
        self.server = server

    def play(self, number: int) -> int:
        kit.work(0.3)
        return ray.get(self.server.generate.remote(number))


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    rollout = Rollout.remote(Server.remote())
    for number in range(1, 10**6):
        ray.get(rollout.play.remote(number))
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "engine":
        generate()
    else:
        main()
