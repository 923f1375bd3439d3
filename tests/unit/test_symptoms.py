"""The line that says which symptoms of a hang hold, and how they were measured."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.collect.files import FileReader
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model import codec
from ray_rl_debug.model.report import Symptom
from ray_rl_debug.model.snapshot import Gpu, OpenFile, Snapshot
from ray_rl_debug.render import html, markdown, terminal

CASES = Path(__file__).parents[1] / "cases"


def case(name: str) -> Snapshot:
    return codec.read_snapshot(CASES / name)


def symptoms(snapshot: Snapshot) -> dict[int, Symptom]:
    return {s.number: s for s in diagnose(snapshot).symptoms}


def with_gpus(*percents: float) -> Snapshot:
    snapshot = case("RRD101/hang.json.gz")
    gpus = tuple(Gpu(index=i, uuid=f"GPU-{i}", name="H100", utilization_percent=p) for i, p in enumerate(percents))
    first = msgspec.structs.replace(snapshot.nodes[0], gpus=gpus)
    return msgspec.structs.replace(snapshot, nodes=(first, *(msgspec.structs.replace(n, gpus=None) for n in snapshot.nodes[1:])))


def test_a_hang_shows_no_progress() -> None:
    found = symptoms(case("RRD101/hang.json.gz"))[1]
    assert found.holds is True
    assert "processes moved in" in found.measured and "most CPU" in found.measured and "logs not measured" in found.measured


def test_an_end_without_a_step() -> None:
    found = symptoms(case("RRD206/hang.json.gz"))
    assert found[2].holds is True
    assert "without a single training step" in found[2].measured
    assert found[1].holds is False


def test_steps_that_were_made() -> None:
    found = symptoms(case("RRD101/hang.json.gz"))[2]
    assert found.holds is False
    assert found.measured.startswith("Ray's task events hold calls of")


@pytest.mark.parametrize(
    ("percents", "holds", "measured"),
    [
        ((0, 0, 100, 99), True, "of 4 GPUs 2 at 0 %, 2 at 100 %"),
        ((100, 100), False, "of 2 GPUs 2 at 100 %"),
        ((0, 0), False, "of 2 GPUs 2 at 0 %"),
        ((0, 50), False, "of 2 GPUs 1 at 0 %, 1 between"),
        ((100,), None, "one GPU only, at 100 %"),
        ((), None, "no GPU was seen"),
    ],
)
def test_gpus_that_part(percents: tuple[float, ...], holds: bool | None, measured: str) -> None:
    found = symptoms(with_gpus(*percents))[3]
    assert (found.holds, found.measured) == (holds, measured)


def test_nothing_seen_is_not_measured() -> None:
    found = symptoms(Snapshot(taken_time_s=0.0))
    assert [found[n].holds for n in (1, 2, 3)] == [None, None, None]


def test_single_looks_from_files_tell_no_movement() -> None:
    snapshot = case("RRD101/hang.json.gz")
    nodes = [
        msgspec.structs.replace(n, processes=tuple(msgspec.structs.replace(p, window_s=None, samples=p.samples[-1:]) for p in n.processes))
        for n in snapshot.nodes
    ]
    told = symptoms(msgspec.structs.replace(snapshot, nodes=tuple(nodes)))[1]
    assert (told.holds, told.measured) == (None, "the files hold single looks: whether anybody moves was not measured")


def test_looks_from_files_at_different_times_tell_who_moved(tmp_path: Path) -> None:
    for when in ("t0", "t30"):
        (tmp_path / when).mkdir()
        for rank, place in enumerate(("all_reduce (torch/distributed/distributed_c10d.py:2800)", "load_shard (data/loader.py:88)")):
            text = f'Process 4{rank}1: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\nThread 4{rank}1 (idle): "MainThread"\n    {place}\n'
            (tmp_path / when / f"rank{rank}.txt").write_text(f"{text}    step (train.py:77)\n")
    snapshot = load((tmp_path / "t0", tmp_path / "t30")).snapshot
    assert snapshot is not None
    told = symptoms(snapshot)[1]
    assert (told.holds, told.measured) == (True, "0 of 2 processes that were dumped more than once, 30 s apart, had moved")


def test_the_age_of_the_last_line() -> None:
    snapshot = case("RRD101/hang.json.gz")
    node = snapshot.nodes[0]
    end = node.started_time_s + node.window_s
    log = OpenFile(fd=1, path="/job/train.log", kind="file", written_time_s=end - 312.0)
    other = OpenFile(fd=2, path="/job/other.log", kind="file", written_time_s=end - 900.0)
    process = msgspec.structs.replace(node.processes[0], files=(log, other))
    changed = msgspec.structs.replace(node, processes=(process, *node.processes[1:]))
    found = symptoms(msgspec.structs.replace(snapshot, nodes=(changed, *snapshot.nodes[1:])))[1]
    assert found.measured.endswith("last line of a log 312 s ago")


def test_when_a_log_was_written_is_read_of_standard_output_only(tmp_path: Path) -> None:
    log, data = tmp_path / "log", tmp_path / "data"
    log.write_text("step 1\n")
    os.utime(log, (time.time() - 500, time.time() - 500))
    with log.open("a") as out, data.open("w") as other:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=out, pass_fds=(other.fileno(),))
        try:
            files = {f.path: f for f in FileReader().read(child.pid) or ()}
        finally:
            child.communicate(b"\n")
    assert files[str(log)].written_time_s == pytest.approx(time.time() - 500, abs=30)
    assert files[str(data)].written_time_s is None


def test_every_form_of_the_report_has_the_line() -> None:
    report = diagnose(with_gpus(0, 100))
    for text in ("\n".join(terminal.render(report, width=300, colour=False)), html.render(report, None), "\n".join(markdown.render(report))):
        text = " ".join(text.split())
        assert "1 no progress: yes (" in text
        assert "3 some GPUs idle, others busy: yes (of 2 GPUs 1 at 0 %, 1 at 100 %)" in text
