"""One rank per node, without Ray: the second one never comes back from its reward."""

import os


def score() -> None:
    pipe = f"/tmp/verifier{os.getpid()}"
    os.mkfifo(pipe)
    print("reads", flush=True)
    with open(pipe) as answers:  # nobody ever writes
        answers.read()


def train(rank: int) -> None:
    import torch
    import torch.distributed as dist

    if rank == 1:
        score()
    dist.all_reduce(torch.ones(4))


def main() -> None:
    import torch.distributed as dist

    rank = int(os.environ["SLURM_PROCID"])
    os.environ.update(RANK=str(rank), WORLD_SIZE=os.environ["SLURM_NTASKS"], MASTER_PORT="29777")
    dist.init_process_group("gloo")
    train(rank)


if __name__ == "__main__":
    main()
