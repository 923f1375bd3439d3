"""What the verdict costs as the ranks grow, and whether it names the right one.

Run: ``python benchmarks/scale.py [--ranks 64 1024 10240 131072] [--kinds straggler ...] [--missing 0 0.05]``, or ``--seeds 1000`` for as many
seeded snapshots of hangs of 64 to 512 ranks, and half as many of healthy runs.

Printed: CPU seconds of the diagnosis alone, the memory that it adds to the snapshot at its peak (each row in a process of its own), and who
is named first. The aim: 10,240 ranks in 1 s, 131,072 in 10 s and 1 GiB; with seeds, the culprit first in 98 %, no healthy run accused.
"""

from __future__ import annotations

import argparse
import gc
import random
import subprocess
import sys
import time
from pathlib import Path

from scale_snapshots import HEALTHY, KINDS, Program, program, snapshot_of

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report

MISSING = 0.05


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 1024, 10_240, 131_072])
    parser.add_argument("--kinds", nargs="+", default=[*KINDS, HEALTHY], choices=[*KINDS, HEALTHY])
    parser.add_argument("--missing", type=float, nargs="+", default=[0.0, MISSING], help="share of the nodes that do not answer")
    parser.add_argument("--seeds", type=int, help="so many seeded snapshots of hangs instead, and half as many of healthy runs")
    parser.add_argument("--row", action="store_true", help="one row in this process")
    asked = parser.parse_args()
    if asked.seeds:
        _seeds(asked.seeds)
    elif asked.row:
        print(_row(program(asked.kinds[0], asked.ranks[0], missing=asked.missing[0])))
    else:
        print(f"{'kind':11} {'ranks':>7} {'silent':>6} {'CPU s':>7} {'MiB added':>9} {'snapshot':>9}  verdict, certainty, who is named first")
        for ranks in asked.ranks:
            for kind in asked.kinds:
                for missing in asked.missing:
                    _in_process(kind, ranks, missing)


def _in_process(kind: str, ranks: int, missing: float) -> None:
    command = [sys.executable, __file__, "--row", "--kinds", kind, "--ranks", str(ranks), "--missing", str(missing)]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stdout.rstrip() if done.returncode == 0 else f"{kind} {ranks}: {done.stderr[-300:]}", flush=True)


def _row(of: Program) -> str:
    snapshot = snapshot_of(of)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = _peak_bytes()
    started = time.process_time()
    report = diagnose(snapshot)
    spent = time.process_time() - started
    added = _peak_bytes() - before
    mark = "ok " if _is_right(of, report) else "BAD"
    told = f"{mark} {report.verdict.state.value}, {report.verdict.certainty.value}, {_first(report)}"
    return f"{of.kind:11} {of.ranks:7} {len(of.silent):6} {spent:7.3f} {added / 2**20:9.0f} {before / 2**20:9.0f}  {told}"


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def _first(report: Report) -> str:
    if not report.findings:
        return "nobody"
    best = report.findings[0]
    return f"{best.id} {', '.join(w.label for w in best.who[:3])}{f' and {len(best.who) - 3} more' if len(best.who) > 3 else ''}"


def _is_right(of: Program, report: Report) -> bool:
    """The culprit alone first; of a healthy run nobody with *likely* or more."""
    if of.kind == HEALTHY:
        return all(f.certainty is Certainty.POSSIBLE for f in report.findings)
    best = report.findings[0] if report.findings else None
    return best is not None and {w.label for w in best.who} <= of.culprits


def _seeds(count: int) -> None:
    wrong: list[str] = []
    for name, is_silent in (("all nodes seen", False), ("some nodes silent", True)):
        hangs = [o for o in (_by_chance(seed, KINDS[seed % len(KINDS)]) for seed in range(count)) if _has_silent(o) is is_silent]
        healthy = [o for o in (_by_chance(seed, HEALTHY) for seed in range(count // 2)) if _has_silent(o) is is_silent]
        right = sum(_is_told(of, wrong) for of in hangs)
        accused = len(healthy) - sum(_is_told(of, wrong) for of in healthy)
        print(f"{name}: the culprit first in {right} of {len(hangs)}; {accused} of {len(healthy)} healthy runs accuse somebody", flush=True)
    print("\n".join(wrong[:20]))


def _has_silent(of: Program) -> bool:
    """Of a rendezvous the culprit's own node always is."""
    return len(of.silent) > (of.kind == "rendezvous")


def _is_told(of: Program, wrong: list[str]) -> bool:
    report = diagnose(snapshot_of(of))
    is_right = not report.findings if of.kind == HEALTHY else _is_right(of, report)
    if not is_right:
        wrong.append(f"{of.kind} seed {of.seed}, {of.ranks} ranks, {len(of.silent)} nodes silent: {report.verdict.state.value}, {_first(report)}")
    return is_right


def _by_chance(seed: int, kind: str) -> Program:
    chance = random.Random(seed)
    return program(kind, 8 * chance.randint(8, 64), seed=seed, missing=chance.choice([0.0, 0.0, 0.02, MISSING]))


if __name__ == "__main__":
    main()
