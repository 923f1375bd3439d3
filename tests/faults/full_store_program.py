"""A job that fills the object store while the worker that should spill it is stopped: ``full_store_program.py ADDRESS``.

Announces the stopped worker once a put waits for room. Ends when standard input closes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import ray

CHUNK = 20 << 20


def spill_workers() -> list[int]:
    """Those at work: one that is stopped before it has told Ray of itself is killed by Ray after a minute."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                title = (entry / "cmdline").read_bytes()
                raylet = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                gcs = (Path("/proc") / str(raylet) / "cmdline").read_bytes()
            except (OSError, ValueError):
                continue
            if b"SPILL_SpillWorker" in title and f"--gcs-address={sys.argv[1]}".encode() in gcs:
                found.append(int(entry.name))
    return found


def main() -> None:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
    stopped: list[int] = []
    kept: list[ray.ObjectRef] = []
    last = [time.monotonic()]

    def stop_spilling() -> None:
        while True:
            for pid in set(spill_workers()) - set(stopped):
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)
            if stopped and time.monotonic() - last[0] > 3.0:
                print(json.dumps({"stopped": stopped, "driver": os.getpid()}), flush=True)
                last[0] = float("inf")
            time.sleep(0.002)

    def end() -> None:
        sys.stdin.read()
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        os._exit(0)

    threading.Thread(target=stop_spilling, daemon=True).start()
    threading.Thread(target=end, daemon=True).start()
    while True:
        kept.append(ray.put(bytes(CHUNK)))
        last[0] = time.monotonic()


if __name__ == "__main__":
    main()
