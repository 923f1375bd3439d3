"""Driver in the place of a trainer: one rank per GPU on every node of the job; they train a small model together and must agree on it.

Its sizes come from the arguments that the job script adds for verl (``trainer.nnodes=``) and for AReaL (``cluster.n_nodes=``).
"""

import os
import socket
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

STEPS = 20


@ray.remote(num_cpus=1, num_gpus=1)
class Rank:
    def __init__(self, rank: int, world_size: int) -> None:
        self.rank, self.world_size = rank, world_size

    def place(self) -> tuple[str, str, int]:
        with socket.create_server(("", 0)) as s:
            return socket.gethostname(), ray.util.get_node_ip_address(), s.getsockname()[1]

    def train(self, host: str, port: int) -> tuple[float, float, float, str]:
        """First and last loss, a checksum of the weights, and a variable that only the raylet could hand down."""
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo", init_method=f"tcp://{host}:{port}", rank=self.rank, world_size=self.world_size)
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        inputs = torch.randn(64, 4, generator=torch.Generator().manual_seed(self.rank + 1))
        losses = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = ((model(inputs) - inputs.sum(1, keepdim=True)) ** 2).mean()
            loss.backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= self.world_size
            optimizer.step()
            losses.append(float(loss))
        dist.barrier()
        dist.destroy_process_group()
        return losses[0], losses[-1], float(sum(p.sum() for p in model.parameters())), os.environ.get("TORCH_FR_BUFFER_SIZE", "not set")


def main() -> int:
    given = dict(a.lstrip("+").split("=", 1) for a in sys.argv[1:] if "=" in a)
    nodes = int(given.get("trainer.nnodes") or given["cluster.n_nodes"])
    gpus = int(given.get("trainer.n_gpus_per_node") or given["cluster.n_gpus_per_node"])
    ray.init(log_to_driver=False)
    group = placement_group([{"CPU": gpus, "GPU": gpus}] * nodes, strategy="STRICT_SPREAD")
    ray.get(group.ready(), timeout=120)
    ranks = [
        Rank.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, bundle)).remote(bundle * gpus + i, nodes * gpus)
        for bundle in range(nodes)
        for i in range(gpus)
    ]
    places = ray.get([r.place.remote() for r in ranks], timeout=120)
    results = ray.get([r.train.remote(*places[0][1:]) for r in ranks], timeout=180)
    hosts = sorted({place[0] for place in places})
    assert len(hosts) == nodes, hosts
    assert len({round(checksum, 5) for _, _, checksum, _ in results}) == 1, results
    assert all(last < first / 2 for first, last, _, _ in results), results
    assert {inherited for *_, inherited in results} == {"2000"}, results
    print(f"trained {STEPS} steps with {len(ranks)} ranks on", *hosts, "arguments:", *sys.argv[1:], flush=True)
    ray.shutdown()
    return int(os.environ.get("DRIVER_EXIT", "0"))


if __name__ == "__main__":
    sys.exit(main())
