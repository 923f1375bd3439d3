"""How fast logs are read, against ``wc -l``, and in how much memory.

    python benchmarks/log_reading.py [--megabytes N] [--files N] [--mix calm,noisy,alarming,prose] [--packed gz|zst] [--folder DIR]

The logs are made up: start-up, training steps, server lines, and one traceback in 200,000 lines; one file per rank. They are read as ``report``
reads them: the story of the log, and the search for stacks in its first 64 MB.

* calm: one line in sixty holds a word of failure and tells of none, as in long runs
* noisy: one line in six does, and there is a traceback in ten thousand lines
* alarming: every second line does
* prose: half of the lines are sampled answers, each different

Each reading is a process of its own, with and without the library that searches all texts at once. The first reading of a file comes from the
disk; seconds of processor time do not depend on that.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STEPS = (
    "(TaskRunner pid=771) step:{n} - actor/pg_loss:0.0{n} - critic/score/mean:0.{n} - timing_s/gen:12.{n} - perf/throughput:812.{n}\n",
    "(WorkerDict pid=42{rank}, ip=10.0.0.{rank}) 2026-11-21 10:00:00,{n} INFO dp_actor.py:41 -- micro batch {n} of 64\n",
    "(EngineCore_DP0 pid=559) INFO 11-21 10:00:00 [loggers.py:123] Avg generation throughput: {n}.0 tokens/s, KV cache usage: {n}%\n",
    "[2026-11-21 10:00:00 TP{rank}] Decode batch. #running-req: {n}, #token: 81{n}, token usage: 0.{n}, #queue-req: 0\n",
    'INFO:     10.0.0.{n}:5231{n} - "POST /generate HTTP/1.1" 200 OK\n',
)
ALARMING = "(WorkerDict pid=42{rank}, ip=10.0.0.{rank}) WARNING reward timed out for sample {n}, score set to 0\n"
FAILURE = 'Traceback (most recent call last):\n  File "/w/a.py", line 3, in f\n    g()\nValueError: bad sample 17\n'
WORDS = (
    "the answer is therefore we have a number of apples each costs and so total price divided by two equals let me think step first second "
    "train speed distance hours minutes solve for x equation both sides subtract multiply square root triangle angle sum degrees probability"
).split()
MIXES = {"calm": (60, 200_000), "noisy": (6, 10_000), "alarming": (2, 10_000), "prose": (60, 200_000)}
"""One alarming line in so many, one traceback in so many."""
LINES_OF_PIECE = 200_000


def piece(mix: str) -> bytes:
    """Lines of one sort, to be repeated."""
    chosen = random.Random(7)
    alarming, failing = MIXES[mix]
    lines = []
    for i in range(LINES_OF_PIECE):
        n = i % 97
        if i % failing == failing - 1:
            lines.append(FAILURE)
        elif i % alarming == 0:
            lines.append(ALARMING.format(n=n, rank=n % 8))
        elif mix == "prose" and i % 2:
            lines.append(" ".join(chosen.choices(WORDS, k=16)) + "\n")
        else:
            lines.append(STEPS[i % len(STEPS)].format(n=n, rank=n % 8))
    return "".join(lines).encode()


def write(folder: Path, mix: str, *, megabytes: int, files: int, packed: str | None) -> int:
    """Make the logs; bytes of plain text. A file smaller than a piece holds lines from its own place in it."""
    part = piece(mix)
    size = (megabytes << 20) // files
    written = 0
    for rank in range(files):
        begin = part.find(b"\n", rank * 768_263 % (len(part) - size)) + 1 if size < len(part) else 0
        end = part.rfind(b"\n", 0, begin + size) + 1 if size < len(part) else len(part)
        times = max(1, size // len(part))
        with _opened(folder / f"rank_{rank}.log", packed) as f:
            for _ in range(times):
                f.write(part[begin:end])
        written += times * (end - begin)
    return written


def _opened(path: Path, packed: str | None) -> Any:
    if packed == "gz":
        return gzip.open(f"{path}.gz", "wb", compresslevel=1)
    if packed == "zst":
        return importlib.import_module("zstandard").open(f"{path}.zst", "wb")
    return path.open("wb")


def cpu_s(command: list[str], **more: object) -> tuple[float, float, str]:
    """Processor seconds and seconds of a command, and what it printed."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout  # type: ignore[call-overload]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - started, said


def read(folder: Path, *, library: bool) -> None:
    """Read the logs in this process, and print what it took: for the child of this program."""
    if not library:
        sys.modules["hyperscan"] = None  # type: ignore[assignment]
    from ray_rl_debug.imports.folder import load
    from ray_rl_debug.logs.book import tools

    tools()
    before, began, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time(), time.monotonic()
    found = load([folder]).snapshot
    spent, took = time.process_time() - began, time.monotonic() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert found is not None
    print(json.dumps({"spent": spent, "took": took, "before": before, "peak": peak, "lines": sum(b.lines for b in found.logs)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--mix", default="calm,noisy,prose")
    parser.add_argument("--packed", choices=["gz", "zst"], help="compared with zcat or zstdcat | wc -l")
    parser.add_argument("--folder", type=Path, help="where the logs are made; they are removed again")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child is not None:
        read(chosen.child, library=not chosen.plain)
        return
    for mix in chosen.mix.split(","):
        with tempfile.TemporaryDirectory(dir=chosen.folder) as temporary:
            folder = Path(temporary)
            free = shutil.disk_usage(folder).free
            if free < (chosen.megabytes << 20) + (4 << 30):
                sys.exit(f"{free >> 30} GiB are free; {chosen.megabytes} MB and 4 GiB to spare are needed")
            size = write(folder, mix, megabytes=chosen.megabytes, files=chosen.files, packed=chosen.packed) / 1e6
            found = f"find '{folder}' -type f -print0 | xargs -0"
            tool = {"gz": "zcat", "zst": "zstdcat"}.get(chosen.packed or "", "cat")
            for _ in range(2):  # the first time from the disk
                counted, waited, said = cpu_s(["sh", "-c", f"{found} {tool} | wc -l" if chosen.packed else f"{found} wc -l | tail -1"])
            print(f"{mix}: {size:.0f} MB in {chosen.files} files, {said.split()[0]} lines")
            print(f"  {'wc -l':18} {counted:8.2f} s of the processor {waited:8.2f} s  {size / max(counted, 1e-3):6.0f} MB/s")
            quick = [("with hyperscan", list[str]())] if importlib.util.find_spec("hyperscan") else []
            for name, more in (*quick, ("standard library", ["--plain"])):
                out = json.loads(cpu_s([sys.executable, __file__, "--child", str(folder), *more], env=os.environ)[2])
                spent = out["spent"]
                print(
                    f"  {name:18} {spent:8.2f} s of the processor {out['took']:8.2f} s  {size / spent:6.0f} MB/s"
                    f"  {spent / max(counted, 1e-3):6.1f} x wc -l"
                    f"  memory {out['peak'] / 1e3:.0f} MB at most, {out['before'] / 1e3:.0f} MB before"
                )


if __name__ == "__main__":
    main()
