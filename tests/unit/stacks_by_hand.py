"""Stacks as people collect them: text of py-spy in files, at one moment or several, judged by ``report``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ray_rl_debug.analyze.by_hand import said_to_hang
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Report

GATHER = "all_gather (torch/distributed/distributed_c10d.py:3900)\nwrapper (torch/distributed/c10d_logger.py:81)"
REDUCE = "all_reduce (torch/distributed/distributed_c10d.py:2900)\nwrapper (torch/distributed/c10d_logger.py:81)"
STEP = "step (trainer.py:88)\nfit (trainer.py:40)\n<module> (train.py:12)"
MEET = "_create_c10d_store (torch/distributed/rendezvous.py:200)\ninit_process_group (torch/distributed/distributed_c10d.py:1806)"
RAY_GET = "get_objects (ray/_private/worker.py:1007)\nget (ray/_private/worker.py:3009)\nfit (driver.py:60)\n<module> (driver.py:90)"
IDLE = "main_loop (ray/_private/worker.py:1069)\n<module> (ray/_private/workers/default_worker.py:323)"


def dump(pid: int, *stacks: str, title: str = "python train.py", state: str = "idle") -> str:
    """What py-spy prints of one process; the first stack is the main thread's, the others have no name."""
    lines = [f"Process {pid}: {title}", "Python v3.11.4 (/usr/bin/python3.11)", ""]
    for number, stack in enumerate(stacks):
        lines.append(f'Thread {pid + number} ({state}): "MainThread"' if not number else f"Thread {pid + number} (active)")
        lines += [f"    {frame}" for frame in stack.split("\n")]
    return "\n".join(lines) + "\n"


def judge(folder: Path, *looks: Sequence[str] | str, apart_s: float | None = None, hung_for_s: float | None = None) -> Report:
    """The report on dumps, one file for each look; without `apart_s` all files have one time."""
    folder.mkdir(exist_ok=True)
    for number, dumps in enumerate(looks):
        path = folder / f"look{number}.txt"
        path.write_text(dumps if isinstance(dumps, str) else "\n".join(dumps))
        time_s = 1_700_000_000 + (apart_s or 0.0) * number
        os.utime(path, (time_s, time_s))
    snapshot = load((folder,)).snapshot
    assert snapshot is not None
    return diagnose(said_to_hang(snapshot, hung_for_s) if hung_for_s is not None else snapshot)


def ranks(stacks: Mapping[int, str]) -> list[str]:
    return [dump(pid, stack) for pid, stack in stacks.items()]


def told(report: Report) -> tuple[str, str, str, set[int | None]]:
    """State, and cause, certainty and pids of the first finding."""
    first = report.findings[0]
    return report.verdict.state.value, first.cause.value, first.certainty.value, {w.pid for w in first.who}
