"""One gloo rank of three; rank 2 leaves out the last collective. Serves torch's worker server where a path is given, then waits to be ended."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d


def main() -> None:
    rank, folder = int(os.environ["RANK"]), Path(sys.argv[1])
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=3)
    for _ in range(3):
        dist.all_reduce(torch.ones(4))
    server = c10d._WorkerServer("127.0.0.1", 0) if hasattr(c10d, "_WorkerServer") else None
    (folder / f"ready{rank}.part").write_text(str(server.port if server is not None and hasattr(server, "port") else 0))
    os.rename(folder / f"ready{rank}.part", folder / f"ready{rank}")
    threading.Thread(target=_dump_when_asked, args=(rank, folder), daemon=True).start()
    if rank != 2:
        dist.all_reduce(torch.ones(4))
    threading.Event().wait()


def _dump_when_asked(rank: int, folder: Path) -> None:
    """Writes both forms at each line on standard input; ``own file`` is where torch itself writes on a timeout."""
    for line in sys.stdin:
        name = line.strip()
        if name == "own file":
            Path(f"{os.environ['TORCH_FR_DUMP_TEMP_FILE']}{rank}").write_bytes(c10d._dump_fr_trace())
            print(name, flush=True)
            continue
        (folder / f"{name}_rank_{rank}.pickle.part").write_bytes(c10d._dump_fr_trace())
        text = c10d._dump_fr_trace_json()
        (folder / f"{name}_rank_{rank}.json.part").write_bytes(text if isinstance(text, bytes) else text.encode())
        for part in folder.glob(f"{name}_rank_{rank}.*.part"):
            os.rename(part, part.with_suffix(""))
        print(name, flush=True)


if __name__ == "__main__":
    main()
