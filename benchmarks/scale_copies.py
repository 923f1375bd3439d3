"""Does the verdict cost more than its share when real runs are copied? Finds what is asked of each process once for every other one.

Run: ``python benchmarks/scale_copies.py [--copies 6 48] [--part 0 --of 8] [--above 12]``

Each recorded snapshot of ``tests/cases`` and ``tests/kinds`` is diagnosed as so many copies of itself, every copy on nodes and with Ray ids of its
own. Printed: how many times the CPU time of the few copies the many take (eight times as many take about eight times as long), the two times,
processes, name; the worst first. A program whose copies all wait for the others has edges between all of them, and then more is right.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import time
from pathlib import Path
from typing import Any

import msgspec

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.codec import encode
from ray_rl_debug.model.snapshot import Snapshot

TESTS = Path(__file__).resolve().parent.parent / "tests"
_RAY_ID = re.compile(r"(?<![0-9a-zA-Z])[0-9a-f]{24,}(?![0-9a-zA-Z])")
_OWN_DIGITS = 6
"""Of an id, replaced by the number of the copy."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--copies", type=int, nargs=2, default=[6, 48])
    parser.add_argument("--part", type=int, default=0, help="which part of the snapshots")
    parser.add_argument("--of", type=int, default=1, help="of how many parts")
    parser.add_argument("--above", type=float, default=0.0, help="print only what takes more than so many times as long")
    asked = parser.parse_args()
    files = sorted([*TESTS.glob("cases/RRD*/*.json.gz"), *TESTS.glob("kinds/recorded/*.json.gz")])[asked.part :: asked.of]
    rows = []
    for file in files:
        snapshot = load((file,)).snapshot
        if snapshot is not None:
            few, many = (_cpu_s(copied(snapshot, copies)) for copies in asked.copies)
            processes = asked.copies[1] * sum(len(n.processes) for n in snapshot.nodes)
            rows.append((many / few, few, many, processes, file.relative_to(TESTS)))
    for times, few, many, processes, name in sorted(rows, reverse=True):
        if times > asked.above:
            print(f"{times:7.1f}  {few:8.3f} s  {many:8.3f} s  {processes:6} processes  {name}")


def _cpu_s(snapshot: Snapshot) -> float:
    gc.collect()
    began = time.process_time()
    diagnose(snapshot)
    return time.process_time() - began


def copied(snapshot: Snapshot, copies: int) -> Snapshot:
    """The snapshot so many times in one: each copy with names of nodes and ids of Ray that no other has."""
    text = encode(snapshot).decode()
    parts = [_copy(text, number, [n.name for n in snapshot.nodes]) for number in range(copies)]
    whole = {**parts[0], "nodes": _joined(parts, "nodes"), "gaps": _joined(parts, "gaps")}
    if snapshot.ray is not None:
        tables = [p["ray"] for p in parts]
        whole["ray"] = {name: _joined(tables, name) if isinstance(value, list) else value for name, value in tables[0].items()}
    return msgspec.convert(whole, Snapshot)


def _copy(text: str, number: int, nodes: list[str]) -> dict[str, Any]:
    text = _RAY_ID.sub(lambda found: f"{number:0{_OWN_DIGITS}x}{found[0][_OWN_DIGITS:]}", text)
    for name in nodes:
        text = text.replace(f'"{name}"', f'"{name}-copy{number}"')
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def _joined(parts: list[dict[str, Any]], name: str) -> list[Any]:
    return [item for part in parts for item in part.get(name, ())]


if __name__ == "__main__":
    main()
