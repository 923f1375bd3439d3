"""What the wait-for chain of a Ray program of twelve processes costs beyond the sampling window.

Run: ``python benchmarks/chain_cost.py [--repeats 5]``. The program is that of ``tests/integration/test_chain.py``, which checks every edge.
Printed: seconds beyond the window of the whole capture (agents, Ray's tables, the node's facts), of the node alone, and of the analysis; the aim for
their sum, node and analysis, is at most 1.5 s.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from integration.clusters import command, program

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.codec import read_snapshot

AIM_S = 1.5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    whole, node, analysis, links = [], [], [], 0
    with (
        tempfile.TemporaryDirectory(prefix="rrc", dir="/tmp", ignore_cleanup_errors=True) as folder,
        program("chain_program.py", folder) as truth,
    ):
        for number in range(repeats):
            done = command("snapshot", "--address", truth["address"], "-q", "-o", f"{folder}/out{number}")
            if done.returncode != 1:
                raise SystemExit(done.stderr)
            snapshot = read_snapshot(Path(folder) / f"out{number}" / "snapshot.json.gz")
            whole.append(snapshot.timing["outside_s"])
            node += [(n.took_s or 0.0) - n.window_s for n in snapshot.nodes]
            started = time.perf_counter()
            report = diagnose(snapshot)
            analysis.append(time.perf_counter() - started)
            links = len(report.links)
    cost = statistics.median(node) + statistics.median(analysis)
    print(f"cores {len(os.sched_getaffinity(0))}, repeats {repeats}, load {os.getloadavg()[0]:.1f}, {len(truth['pids'])} processes, {links} edges")
    for name, values in (("whole capture", whole), ("node", node), ("analysis", analysis)):
        print(f"{name:14} median {statistics.median(values):.3f} s  ({min(values):.3f} to {max(values):.3f}) beyond the window")
    print(f"node and analysis {cost:.2f} s (aim: at most {AIM_S})")


if __name__ == "__main__":
    main()
