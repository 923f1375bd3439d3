"""Stamps in names of files and folders: which files are later looks at the same processes, and how far apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.analyze.by_hand import apart_s
from ray_rl_debug.imports.folder import load
from ray_rl_debug.imports.looks import stamp_of
from ray_rl_debug.model.snapshot import Snapshot

DUMP = 'Process {pid}: python train.py\n\nThread {pid} (idle): "MainThread"\n    f (train.py:{line})\n    <module> (train.py:9)\n'


@pytest.mark.parametrize(
    ("name", "rest", "time_s"),
    [
        ("t0", "", None),
        ("t30", "", None),
        ("rank_1_t30", "rank_1", None),
        ("rank1-t+30s", "rank1", 30.0),
        ("30s_later", "", 30.0),
        ("stacks_5min", "stacks", 300.0),
        ("look2", "", None),
        ("node3_20260921_101500", "node3", 1789985700.0),
        ("dump-1789985700", "dump", 1789985700.0),
    ],
)
def test_a_stamp_is_taken_off(name: str, rest: str, time_s: float | None) -> None:
    stamp = stamp_of(name)
    assert stamp is not None
    assert (stamp.rest, stamp.time_s) == (rest, time_s)


@pytest.mark.parametrize("name", ["rank_1", "dump_4008", "node3", "trainer", "t", "worker-12", "99999999_999999", "tp0", "at30"])
def test_other_names_have_none(name: str) -> None:
    assert stamp_of(name) is None


def _written(folder: Path, *names: str) -> Snapshot:
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(DUMP.format(pid=41, line=number + 1))
    snapshot = load([folder]).snapshot
    assert snapshot is not None
    return snapshot


@pytest.mark.parametrize(
    ("names", "seconds"),
    [
        (("t0/rank0.txt", "t30/rank0.txt"), 30.0),
        (("job/node1/t0/rank0.txt", "job/node1/t60/rank0.txt"), 60.0),
        (("20260921_101500/rank0.txt", "20260921_101545/rank0.txt"), 45.0),
        (("rank0_0s.txt", "rank0_2min.txt"), 120.0),
    ],
)
def test_looks_of_one_process_are_its_samples(tmp_path: Path, names: tuple[str, ...], seconds: float) -> None:
    processes = [p for n in _written(tmp_path / "case", *names).nodes for p in n.processes]
    assert [len(p.samples) for p in processes] == [2]
    assert apart_s(processes[0]) == pytest.approx(seconds)


def test_the_later_look_comes_last_whatever_the_order_of_names(tmp_path: Path) -> None:
    node = _written(tmp_path / "case", "t30/a.txt", "t0/a.txt").nodes[0]
    assert [s.at_s for s in node.processes[0].samples] == [0.0, 30.0]
    assert [node.frames[node.stacks[s.threads[0].stack][0]].line for s in node.processes[0].samples] == [2, 1]


def test_two_machines_keep_their_names(tmp_path: Path) -> None:
    snapshot = _written(tmp_path / "case", "n1/t0/a.txt", "n1/t30/a.txt", "n2/t0/a.txt", "n2/t30/a.txt")
    assert {n.name: len(n.processes[0].samples) for n in snapshot.nodes} == {"n1": 2, "n2": 2}


def test_a_stamp_that_only_one_file_has_means_nothing(tmp_path: Path) -> None:
    assert [n.name for n in _written(tmp_path / "case", "t30/a.txt").nodes] == ["t30"]


def test_counted_looks_tell_only_the_order(tmp_path: Path) -> None:
    process = _written(tmp_path / "case", "t1/a.txt", "t2/a.txt").nodes[0].processes[0]
    assert len(process.samples) == 2
    assert apart_s(process) < 15
