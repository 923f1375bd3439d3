"""A rank that was killed while a thread of it stood in the kernel: it has ended, and neither its parent nor the others notice."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from scenes import ALL_REDUCE, EXECUTOR, MAIN, Stacks, process, ray_state, snapshot

from ray_rl_debug.collect.procfs import read_arguments, read_environment
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, State
from ray_rl_debug.model.snapshot import Thread

STEP = f"{ALL_REDUCE} Trainer.step@app/trainer.py:30 {EXECUTOR} {MAIN}"


@pytest.mark.parametrize("state", ["Z", "D"])
def test_its_memory_is_read_through_the_thread_that_is_left(state: str, tmp_path: Path) -> None:
    """Of one that only stands in the kernel no other thread is asked: each might take as long as the first."""
    kept = tmp_path / "7" / "task" / "9"
    kept.mkdir(parents=True)
    (tmp_path / "7" / "task" / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_bytes(b"")
    (tmp_path / "7" / "stat").write_text(f"7 (python) {state} 1 " + "0 " * 13 + "20 0 2 0 100 0 0 " + "0 " * 30)
    (kept / "cmdline").write_bytes(b"python\0train.py\0")
    (kept / "environ").write_bytes(b"RANK=1\0WORLD_SIZE=3\0")
    has_ended = state == "Z"
    assert read_arguments(7, tmp_path) == (["python", "train.py"] if has_ended else [])
    assert read_environment(7, tmp_path) == ([("RANK", "1"), ("WORLD_SIZE", "3")] if has_ended else None)
    assert read_environment(8, tmp_path) is None


def test_it_is_named_with_the_thread_that_cannot_end() -> None:
    stacks = Stacks()
    ranks = [process(stacks, 100 + r, "ray::Trainer.step", STEP, rank=r, size=3) for r in (0, 2)]
    threads = (Thread(tid=101, comm="python", state="Z"), Thread(tid=140, comm="python", state="D", wchan="nv_drm_wait", call="ioctl"))
    dead = msgspec.structs.replace(process(stacks, 101, "ray::Trainer.step", rank=1, size=3, state="Z"), threads=threads, samples=(), exit_code=-9)
    report = diagnose(snapshot(stacks.node([*ranks, dead]), ray_state()))
    first = report.findings[0]
    assert (report.verdict.state, first.id, first.certainty, [w.rank for w in first.who]) == (State.HANG, "RRD107", Certainty.PROVEN, [1])
    assert "its thread 140 stays in the kernel" in first.summary
    assert "state D, nv_drm_wait, call ioctl" in first.evidence[0].text
    assert "no signal ends it" in first.remedy[0]
