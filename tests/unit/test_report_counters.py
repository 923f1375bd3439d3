"""``report`` on files that hold only counters: Flight Recorder dumps and answers of NCCL RAS."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from flights import NOW_NS, as_json, dump, entry
from ras_answers import TEXT, answer, lost, rank, without_commas

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty, Finding, Report, State

ALL4: dict[str, Sequence[int]] = {"0": (0, 1, 2, 3)}
HANG_S = 600.0
"""The dumps are written this long after the run began."""


def write(folder: Path, by_rank: Mapping[int, dict[str, Any]], *, after_s: float = HANG_S, form: str = "json") -> Path:
    folder.mkdir(exist_ok=True)
    for number, plain in by_rank.items():
        path = folder / (f"rank_{number}.json" if form == "json" else f"nccl_trace_rank_{number}")
        path.write_bytes(as_json(plain) if form == "json" else pickle.dumps(plain))
        stamp(path, after_s)
    return folder


def stamp(path: Path, after_s: float) -> None:
    at = NOW_NS / 1e9 + after_s
    os.utime(path, (at, at))


def report(*paths: Path) -> Report:
    snapshot = load(paths).snapshot
    assert snapshot is not None
    return diagnose(snapshot)


def same(
    entries: Sequence[dict[str, Any]], ranks: Sequence[int] = range(4), groups: dict[str, Sequence[int]] | None = ALL4
) -> dict[int, dict[str, Any]]:
    return {r: dump(entries, groups=groups) for r in ranks}


def root(found: Report) -> Finding:
    assert len(found.findings) == 1, [f.summary for f in found.findings]
    return found.findings[0]


STEPS = [entry(1), entry(2)]
WAITING = [*STEPS, entry(3, done=False)]


@pytest.mark.parametrize("form", ["json", "pickle"])
def test_a_skipped_collective_names_the_rank(tmp_path: Path, form: str) -> None:
    found = report(write(tmp_path / "fr", {**same(WAITING), 2: dump(STEPS, groups=ALL4)}, form=form))
    one = root(found)
    assert (found.verdict.state, one.cause.value, one.certainty) == (State.HANG, "straggler", Certainty.LIKELY)
    assert ([w.label for w in one.who], one.who[0].world, one.who[0].rank) == (["world/2"], "world", 2)
    assert {v.label for v in one.victims} == {"world/0", "world/1", "world/3"}
    assert any(e.kind == "collective" and "all_reduce number 3" in e.text for e in one.evidence)


def test_young_waits_are_no_hang_yet(tmp_path: Path) -> None:
    found = report(write(tmp_path / "fr", {**same(WAITING), 2: dump(STEPS, groups=ALL4)}, after_s=4.0))
    assert (found.verdict.state, root(found).certainty) == (State.UNKNOWN, Certainty.POSSIBLE)


def test_different_collectives_name_the_smaller_side(tmp_path: Path) -> None:
    found = report(write(tmp_path / "fr", {**same(WAITING), 0: dump([*STEPS, entry(3, "barrier", done=False)], groups=ALL4)}))
    assert (found.verdict.state, root(found).cause.value, [w.label for w in root(found).who]) == (State.HANG, "collective-mismatch", ["world/0"])


@pytest.mark.parametrize("odd", [{"size": 8}, {"dtype": "Half"}])
def test_sizes_and_types_that_differ(tmp_path: Path, odd: dict[str, Any]) -> None:
    found = report(write(tmp_path / "fr", {**same(WAITING), 3: dump([*STEPS, entry(3, done=False, **odd)], groups=ALL4)}))
    assert (root(found).cause.value, [w.label for w in root(found).who]) == ("collective-mismatch", ["world/3"])


def test_a_tie_accuses_nobody(tmp_path: Path) -> None:
    other = [*STEPS, entry(3, "barrier", done=False)]
    found = report(write(tmp_path / "fr", {**same(WAITING, (0, 2)), **same(other, (1, 3))}))
    assert (root(found).cause.value, root(found).who, root(found).certainty) == ("collective-mismatch", (), Certainty.POSSIBLE)
    assert "neither side is larger" in root(found).summary


def test_all_present_is_the_network(tmp_path: Path) -> None:
    found = report(write(tmp_path / "fr", same(WAITING)))
    assert (found.verdict.state, root(found).cause.value) == (State.HANG, "collective-stalled")
    assert [w.pid for w in root(found).who] == [None]


def test_a_ring_of_receives(tmp_path: Path) -> None:
    groups: dict[str, Sequence[int]] = {"0": (0, 1, 2)}
    ring = {r: dump([entry(1), entry(1, f"recv {r}<-{(r + 1) % 3}", p2p=True, done=False)], groups=groups) for r in range(3)}
    found = report(write(tmp_path / "fr", ring))
    assert (root(found).cause.value, [w.label for w in root(found).who]) == ("p2p-mismatch", ["world/0", "world/1", "world/2"])


def test_a_stage_that_went_on_to_a_collective(tmp_path: Path) -> None:
    groups: dict[str, Sequence[int]] = {"0": (0, 1)}
    stages = {
        0: dump([entry(1), entry(2, done=False)], groups=groups),
        1: dump([entry(1), entry(1, "recv 1<-0", p2p=True, done=False)], groups=groups),
    }
    found = report(write(tmp_path / "fr", stages))
    assert (root(found).cause.value, [w.label for w in root(found).who]) == ("p2p-mismatch", ["world/0"])


def test_a_missing_dump_is_a_gap_and_no_culprit(tmp_path: Path) -> None:
    found = report(write(tmp_path / "fr", same(WAITING, (0, 1, 2))))
    assert (found.verdict.state, found.findings) == (State.UNKNOWN, ())
    assert [g.what for g in found.gaps if g.id == "RRD918"] == ["Flight Recorder dump of rank 3 of 4"]


def test_older_entries_overwritten(tmp_path: Path) -> None:
    kept = [entry(90), entry(91), entry(92, done=False)]
    by_rank = {r: dump(kept, groups=ALL4, first_record=89) for r in (0, 2, 3)}
    found = report(write(tmp_path / "fr", {**by_rank, 1: dump([entry(89), entry(90), entry(91)], groups=ALL4, first_record=88)}))
    assert [w.label for w in root(found).who] == ["world/1"]


def test_dumps_of_a_run_that_moves_accuse_nobody(tmp_path: Path) -> None:
    later = [*STEPS, entry(3), entry(4), entry(5, done=False)]
    found = report(write(tmp_path / "fr", {**same(later), 1: dump(WAITING, groups=ALL4), 2: dump(STEPS, groups=ALL4)}))
    assert (found.verdict.state, found.findings) == (State.HEALTHY, ())


def test_two_moments_in_one_folder(tmp_path: Path) -> None:
    folder = tmp_path / "fr"
    folder.mkdir()
    for moment, (entries, behind) in enumerate([(WAITING, STEPS), ([*STEPS, entry(3), entry(4, done=False)], [*STEPS, entry(3)])]):
        for number, plain in {**same(entries), 2: dump(behind, groups=ALL4)}.items():
            path = folder / f"t{moment}_rank_{number}.json"
            path.write_bytes(as_json(plain))
            stamp(path, 600.0 + 30 * moment)
    found = report(folder)
    assert (found.verdict.state, found.findings) == (State.HEALTHY, ())


def test_hostile_cut_and_foreign_files_are_one_line_each_and_the_rest_is_used(tmp_path: Path) -> None:
    folder = write(tmp_path / "fr", {**same(WAITING), 2: dump(STEPS, groups=ALL4)})
    (folder / "rank_7").write_bytes(b"\x80\x04cos\nsystem\n(S'touch /tmp/x'\ntR.")
    (folder / "rank_8.json").write_bytes(as_json(dump(WAITING))[:-9])
    (folder / "other.json").write_bytes(b'{"a": 1}')
    found = report(folder)
    assert [w.label for w in root(found).who] == ["world/2"]
    assert {g.where for g in found.gaps if g.id == "RRD912"} == {"rank_7", "rank_8.json", "other.json"}


def test_stacks_and_dumps_of_one_folder_are_one_process(tmp_path: Path) -> None:
    folder = write(tmp_path / "hang_detector", {**same(WAITING), 2: dump(STEPS, groups=ALL4)})
    for number in range(4):
        place = "    compute_score (reward.py:31)" if number == 2 else "    all_reduce (torch/distributed/distributed_c10d.py:3252)"
        text = (
            f'Process {900 + number}: python train.py\nPython v3.11.7\n\nThread {900 + number} (idle): "MainThread"\n{place}\n    fit (train.py:9)\n'
        )
        (folder / f"rank_{number}.log").write_text(text)
        stamp(folder / f"rank_{number}.log", HANG_S)
    found = report(folder)
    assert [(w.rank, w.pid) for w in root(found).who] == [(2, 902)]
    kinds = {e.kind for e in root(found).evidence}
    assert {"stack", "collective"} <= kinds


def write_ras(folder: Path, *answers: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for i, data in enumerate(answers):
        path = folder / f"ncclras_{i}.json"
        path.write_bytes(data)
        stamp(path, 30.0 * i)
    return folder


BEHIND = answer([rank(r, {"AllReduce": 7 if r == 1 else 8}) for r in range(4)])


def test_polls_that_stand_still_name_the_rank_that_lags(tmp_path: Path) -> None:
    found = report(write_ras(tmp_path / "ras", BEHIND, BEHIND))
    one = root(found)
    assert (found.verdict.state, one.cause.value, [(w.label, w.pid, w.node) for w in one.who]) == (
        State.HANG,
        "straggler",
        [("world/1", 1001, "10.0.0.1")],
    )
    assert any("launched 7 AllReduce, others 8 in 2 polls over 30 s" in e.text for e in one.evidence)


def test_one_poll_alone_is_only_possible(tmp_path: Path) -> None:
    found = report(write_ras(tmp_path / "ras", BEHIND))
    assert (found.verdict.state, root(found).certainty) == (State.UNKNOWN, Certainty.POSSIBLE)


def test_polls_that_move_accuse_nobody(tmp_path: Path) -> None:
    later = answer([rank(r, {"AllReduce": 8 if r == 1 else 9}) for r in range(4)])
    assert report(write_ras(tmp_path / "ras", BEHIND, later)).findings == ()


@pytest.mark.parametrize("malformed", [False, True])
def test_a_rank_that_is_dead(tmp_path: Path, malformed: bool) -> None:
    data = answer([rank(r, {"AllReduce": 8}) for r in range(3)], [lost(3, dead=True, host="10.0.0.2")])
    data = without_commas(data) if malformed else data
    found = report(write_ras(tmp_path / "ras", data, data))
    one = root(found)
    assert (found.verdict.state, one.cause.value, [(w.node, w.pid) for w in one.who]) == (State.HANG, "rank-died", [("10.0.0.2", 1003)])


def test_text_of_an_older_nccl(tmp_path: Path) -> None:
    path = tmp_path / "ras.txt"
    path.write_text(TEXT)
    found = report(path)
    told = [(f.cause.value, f.certainty, [w.pid for w in f.who]) for f in found.findings]
    assert told == [("rank-died", Certainty.LIKELY, [1007]), ("straggler", Certainty.POSSIBLE, [1002])]


def test_dumps_of_an_earlier_moment_than_the_stacks_are_left_out(tmp_path: Path) -> None:
    """Rank 2 had not joined when the dumps were written; by its stack it has since."""
    folder = write(tmp_path / "run", {**same(WAITING), 2: dump(STEPS, groups=ALL4)})
    for number in range(4):
        place = "    update (train.py:30)" if number == 3 else "    all_reduce (torch/distributed/distributed_c10d.py:3252)\n    update (train.py:31)"
        text = f'Process {900 + number}: python train.py\nPython v3.11.7\n\nThread {900 + number} (idle): "MainThread"\n{place}\n'
        (folder / f"rank_{number}.log").write_text(text)
    found = report(folder)
    assert [w.rank for f in found.findings for w in f.who] == [3]
