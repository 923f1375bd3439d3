"""Programs behind the cases of lock files, without Ray: ``python tests/cases/lock_files.py left``, or ``held``.

Two ranks load an extension that a third process builds. In ``left`` the builder is killed; in ``held`` it goes on. Prints the pids of all that
live, and stays until stdin closes. Then: ``rayrl-debug snapshot --pid PID --pid PID -o DIR``, and ``store.py``.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from multiprocessing import Event, Process
from multiprocessing.synchronize import Event as EventType
from pathlib import Path


def loads(folder: str) -> None:
    """A rank: torch finds the lock file of the build, and waits."""
    from torch.utils import cpp_extension

    source = Path(folder, "fused_reward.cpp")
    source.write_text("// never compiled here\n")
    cpp_extension.load("fused_reward", [str(source)], build_directory=folder, with_cuda=False)


def builds(folder: str, begun: EventType) -> None:
    """Takes the lock as torch does, and computes: no compiler is needed for that."""
    from torch.utils.file_baton import FileBaton

    assert FileBaton(os.path.join(folder, "lock")).try_acquire()
    begun.set()
    text = b"kernel"
    while True:
        text = hashlib.sha256(text * 1000).digest()


def main(kind: str) -> None:
    folder = tempfile.mkdtemp(prefix="torch_extensions-")
    begun = Event()
    builder = Process(target=builds, args=(folder, begun), daemon=True)
    builder.start()
    begun.wait()
    if kind == "left":
        builder.kill()
        builder.join()
    ranks = [Process(target=loads, args=(folder,), name=f"rank{i}", daemon=True) for i in range(2)]
    for rank in ranks:
        rank.start()
    time.sleep(15.0)  # torch is imported by then
    print(*(p.pid for p in [*ranks, builder] if p.is_alive()), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
