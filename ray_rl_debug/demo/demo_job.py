"""The patient of the demo: two Ray nodes on this machine and a miniature RL loop that hangs for a real reason.

Run as ``python -m ray_rl_debug.demo.demo_job FOLDER``. Prints one JSON line when the hang is reached, ends when its standard input closes.
With torch the ranks wait in real gloo collectives, without it in Ray calls; in both cases one rank asks a tool server that never answers.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

WORLD = 3
CULPRIT = 2
HANG_AT_STEP = 3
ROLLOUT_S, REWARD_S, UPDATE_S = 0.4, 0.15, 0.25
"""What a phase takes, so that the steps can be told apart in a timeline."""


class ToolServer:
    """Accepts every request and never answers, like a code sandbox that lost its workers."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def pid(self) -> int:
        return os.getpid()

    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def _accept(self) -> None:
        while True:
            self._connections.append(self._socket.accept()[0])


class PolicyTrainer:
    """One rank: generates, scores with a tool, updates; ranks meet in a collective after each phase."""

    def __init__(self, rank: int, meeting: str, tool_port: int, folder: str) -> None:
        self.rank, self.tool_port, self.folder = rank, tool_port, folder
        host, _, port = meeting.partition(":")
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(WORLD), MASTER_ADDR=host, MASTER_PORT=port)
        self.torch: Any = None

    def pid(self) -> int:
        return os.getpid()

    def init_model(self) -> bool:
        if importlib.util.find_spec("torch") is not None:
            import torch
            import torch.distributed as dist

            torch.set_num_threads(1)
            dist.init_process_group("gloo")
            self.torch = torch
        return True

    def generate_sequences(self, step: int) -> float:
        time.sleep(ROLLOUT_S + 0.1 * self.rank)
        return self._meet(float(self.rank))

    def compute_reward(self, step: int) -> float:
        time.sleep(REWARD_S)
        if step == HANG_AT_STEP and self.rank == CULPRIT:
            self.run_tool("print(6 * 7)")
        return self._meet(float(self.rank))

    def update_policy(self, step: int) -> float:
        time.sleep(UPDATE_S)
        return self._meet(1.0)

    def run_tool(self, code: str) -> bytes:
        """Ask the sandbox, without a time limit: the bug of this demo."""
        with socket.create_connection(("127.0.0.1", self.tool_port)) as connection:
            connection.sendall(code.encode())
            Path(self.folder, "hung").write_text(str(os.getpid()))
            return connection.recv(4096)

    def _meet(self, value: float) -> float:
        if self.torch is None:
            return value
        tensor = self.torch.tensor([value])
        self.torch.distributed.all_reduce(tensor)
        return float(tensor)


class TaskRunner:
    """The single controller, an actor as in verl."""

    def fit(self, trainers: list[Any]) -> int:
        import ray

        ray.get([t.init_model.remote() for t in trainers])
        for step in range(1, 100):
            ray.get([t.generate_sequences.remote(step) for t in trainers])
            ray.get([t.compute_reward.remote(step) for t in trainers])
            ray.get([t.update_policy.remote(step) for t in trainers])
        return 100


def main(folder: str) -> None:
    """Start the cluster, reach the hang, hold until stdin closes, take everything down."""
    import ray
    from ray.cluster_utils import Cluster

    temp = os.path.join(folder, "ray")
    os.makedirs(temp, exist_ok=True)
    head = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 100 << 20, "temp_dir": temp}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        cluster.add_node(num_cpus=3, object_store_memory=100 << 20)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        tool = ray.remote(ToolServer).options(num_cpus=0, name="tool_server").remote()
        meeting = f"127.0.0.1:{_free_port()}"
        port = ray.get(tool.port.remote())
        trainer_class: Any = ray.remote(PolicyTrainer)
        trainers = [trainer_class.options(num_cpus=1, name=f"trainer_{r}").remote(r, meeting, port, folder) for r in range(WORLD)]
        pids = ray.get([t.pid.remote() for t in trainers])
        runner = ray.remote(TaskRunner).options(num_cpus=0, name="task_runner").remote()
        working = runner.fit.remote(trainers)
        _until_hung(folder, working)
        sys.stdout.write(json.dumps({"address": cluster.address, "rank": pids[CULPRIT], "server": ray.get(tool.pid.remote())}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()
    finally:
        threading.Timer(20, os._exit, args=(3,)).start()  # a sick raylet must not keep the demo
        ray.shutdown()
        cluster.shutdown()
        os._exit(0)


def _free_port() -> int:
    """A port above those of Ray's workers and below those that the kernel gives away: nobody takes it before rank 0 listens there."""
    for port in random.sample(range(20000, 32768), 200):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("no free port between 20000 and 32768")


def _until_hung(folder: str, working: Any, deadline_s: float = 45.0) -> None:
    import ray

    end = time.monotonic() + deadline_s
    while not os.path.exists(os.path.join(folder, "hung")):
        done, _ = ray.wait([working], timeout=0.2)
        if done:
            ray.get(done)  # raises what went wrong
        if time.monotonic() > end:
            raise TimeoutError("the demo job did not reach its hang")
    time.sleep(1.0)  # let the other ranks arrive where they will wait


if __name__ == "__main__":
    main(sys.argv[1])
