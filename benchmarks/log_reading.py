"""How fast logs are read, against ``wc -l``, and in how much memory: ``python benchmarks/log_reading.py [MB]``.

The log is made up: training steps, server lines, warnings, and one failure in ten thousand lines. It is read with and without
the library that searches all texts at once.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ray_rl_debug.imports.unpacking import blocks
from ray_rl_debug.logs.book import BLOCK_BYTES, BookReader
from ray_rl_debug.logs.search import Searcher
from ray_rl_debug.logs.words import STEMS
from ray_rl_debug.signatures.match import Matcher

LINES = (
    "(TaskRunner pid=771) step:{n} - actor/pg_loss:0.0{n} - critic/score/mean:0.{n} - timing_s/gen:12.{n} - perf/throughput:812.{n}\n",
    "(WorkerDict pid=42{n}, ip=10.0.0.{n}) 2026-11-21 10:00:00,{n} INFO dp_actor.py:41 -- micro batch {n} of 64\n",
    "(EngineCore_DP0 pid=559) INFO 11-21 10:00:00 [loggers.py:123] Avg generation throughput: {n}.0 tokens/s, KV cache usage: {n}%\n",
    "[2026-11-21 10:00:00 TP{n}] Decode batch. #running-req: {n}, #token: 81{n}, token usage: 0.{n}, #queue-req: 0\n",
    "(WorkerDict pid=42{n}, ip=10.0.0.{n}) WARNING reward timed out for sample {n}, score set to 0\n",
    'INFO:     10.0.0.{n}:5231{n} - "POST /generate HTTP/1.1" 200 OK\n',
)
FAILURE = 'Traceback (most recent call last):\n  File "/w/a.py", line 3, in f\n    g()\nValueError: bad sample 17\n'


def write(path: Path, megabytes: int) -> None:
    piece = "".join(LINES[i % len(LINES)].format(n=i % 97) for i in range(10_000)) + FAILURE
    with path.open("w") as f:
        for _ in range(max(1, (megabytes << 20) // len(piece))):
            f.write(piece)


def read(path: Path, *, library: bool) -> float:
    matcher = Matcher()
    searcher = Searcher([*(s.encode() for s in STEMS), *matcher.literals], library=library)
    started = time.process_time()
    reader = BookReader(str(path), modified_time_s=path.stat().st_mtime, use=(matcher, searcher))
    for block in blocks(path, BLOCK_BYTES):
        reader.feed(block)
    reader.end()
    return time.process_time() - started


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.log"
        write(path, megabytes)
        size = path.stat().st_size / 1e6
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(["wc", "-l", str(path)], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        counted = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{size:.0f} MB; seconds of processor time")
        print(f"wc -l                {counted:8.2f} s  {size / max(counted, 1e-3):8.0f} MB/s")
        for name, library in (("with hyperscan", True), ("standard library", False)):
            spent = read(path, library=library)
            print(f"{name:20} {spent:8.2f} s  {size / spent:8.0f} MB/s  {spent / max(counted, 1e-3):6.1f} × wc -l")
        print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


if __name__ == "__main__":
    main()
