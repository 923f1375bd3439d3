"""Three ranks step together. Somebody freezes the control group of one, as `docker pause` does, and forgets to thaw it.

In the twin it is thawed again after a moment, each time.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

import kit


def rank() -> None:
    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    for step in range(1, 10**6):
        kit.work(0.3)
        dist.all_reduce(torch.ones(8))
        if me == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    group = control_group()
    ranks = kit.ranks_as_programs(__file__, 3)
    (group / "cgroup.procs").write_text(str(ranks[1].pid))
    freeze = group / "cgroup.freeze"
    while not (kit.folder() / "step").exists() or int((kit.folder() / "step").read_text()) < kit.STEP:
        time.sleep(0.1)
    while not kit.differs(kit.STEP):
        freeze.write_text("1")
        time.sleep(0.5)
        freeze.write_text("0")
        time.sleep(3)
    freeze.write_text("1")
    for one in ranks:
        one.wait()


def control_group() -> Path:
    """A new one of version 2, which root may make; those that earlier runs left are removed."""
    root = Path("/sys/fs/cgroup")
    root = root / "unified" if (root / "unified").is_dir() else root
    for left in root.glob("kit-*"):
        with contextlib.suppress(OSError):
            left.rmdir()
    group = root / f"kit-{os.getpid()}"
    group.mkdir()
    return group


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    else:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        rank()
