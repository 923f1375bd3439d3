"""One rank of a small trainer, several on one card: ``python train.py SCENARIO RANK WORLD PORT``.

NCCL takes ranks of one machine on one card only if it believes that they are on different hosts. The looks beside this file were taken of three such
ranks, started one by one in the folder /job, with ``rayrl-debug snapshot --here --pid ... -o DIR``. Scenarios: healthy, straggler, kernel (rank 1
waits for a kernel that does not end before it calls the collective), queued (the same, behind the call), killed. Those of bootstrap, ring, stopped
and sleepy differ in one line: rank 2 never calls a collective, all call recv first, rank 1 stops itself, rank 1 sleeps.
"""

import os
import signal
import sys

import torch
import torch.distributed as dist

FATAL = 5


def forward(step):
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    for _ in range(20):
        a = a @ a * 1e-3
    return a.float().mean()


def normalise(text):
    while "(" in text:
        text = text.replace("()", "")
    return text


def reduce_gradient(loss):
    gradient = torch.ones(1 << 20, device="cuda") * loss
    dist.all_reduce(gradient)
    return gradient


def log_metrics(gradient):
    return gradient.sum().item()


def train_step(scenario, step):
    if step == FATAL and dist.get_rank() == 1:
        if scenario == "straggler":
            normalise("((x))")
        if scenario in ("kernel", "queued"):
            torch.cuda._sleep(1 << 62)
        if scenario == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
    loss = forward(step)
    if scenario == "kernel":
        loss.item()
    return log_metrics(reduce_gradient(loss))


def main(scenario, rank, world, port):
    os.environ.update(RANK=rank, WORLD_SIZE=world, MASTER_ADDR="127.0.0.1", MASTER_PORT=port, LOCAL_RANK="0")
    os.environ.update(NCCL_HOSTID=f"host{rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    for step in range(1, 10**6):
        train_step(scenario, step)


if __name__ == "__main__":
    main(*sys.argv[1:5])
