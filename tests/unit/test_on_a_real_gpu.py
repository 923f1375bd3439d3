"""Looks at programs that stood or ran on an NVIDIA H100, three ranks of NCCL 2.28 on one card; ``tests/data/gpu/train.py`` says how to take them.

CUDA waits with a core of its own: a rank in ``loss.item()`` looks like one that computes. What tells is NVML's power, NCCL's counts, and the
frames of C.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ray_rl_debug.analyze.by_hand import said_to_hang
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.diagnosis.open_questions import LONGER
from ray_rl_debug.model.codec import read_snapshot
from ray_rl_debug.model.report import Report, State
from ray_rl_debug.model.snapshot import Snapshot

LOOKS = Path(__file__).parents[1] / "data" / "gpu"


def _look(name: str) -> Snapshot:
    return read_snapshot(LOOKS / f"{name}.json.gz")


def _without(snapshot: Snapshot, **facts: object) -> Snapshot:
    return replace(snapshot, nodes=tuple(replace(n, **facts) for n in snapshot.nodes))  # type: ignore[arg-type]


def _named(report: Report) -> list[tuple[str, str, list[str]]]:
    return [(f.id, f.certainty.value, [w.label for w in f.who]) for f in report.findings]


@pytest.mark.parametrize(
    ("name", "state", "named"),
    [
        ("healthy", State.HEALTHY, []),
        ("straggler", State.UNKNOWN, [("RRD101", "possible", ["rank/1"])]),
        ("kernel", State.UNKNOWN, [("RRD101", "possible", ["rank/1"])]),
        ("queued", State.UNKNOWN, [("RRD103", "possible", ["network or device between the ranks of world"])]),
        ("bootstrap", State.UNKNOWN, [("RRD101", "possible", ["rank/2"])]),
        ("killed", State.HANG, [("RRD107", "proven", ["python3 (pid 1384)"])]),
        ("ring", State.HANG, [("RRD105", "likely", ["rank/0", "rank/1", "rank/2"])]),
        ("stopped", State.HANG, [("RRD501", "proven", ["rank/1"])]),
        ("sleepy", State.HANG, [("RRD101", "likely", ["rank/1"])]),
    ],
)
def test_each_is_told(name: str, state: State, named: list[tuple[str, str, list[str]]]) -> None:
    report = diagnose(_look(name))
    assert (report.verdict.state, _named(report)) == (state, named)


def test_a_look_too_short_to_read_c_asks_for_a_longer_one() -> None:
    """All three ranks use a core in ``item()`` for ever: that was called healthy."""
    report = diagnose(_look("queued_first_look"))
    assert (report.verdict.state, report.verdict.next) == (State.UNKNOWN, LONGER)
    assert "GPU 0 at 100 % with 125 of 700 W" in report.verdict.summary


@pytest.mark.parametrize("name", ["straggler", "sleepy"])
def test_without_counts_of_nccl_the_frames_of_c_clear_who_waits(name: str) -> None:
    """NCCL counts for others from 2.24 on only. The rank in ``item()`` must not be accused in the place of the one that it waits for."""
    report = diagnose(_without(_look(name), communicators=None))
    assert [who for _, _, who in _named(report)] == [["rank/1"]]


def test_a_dead_child_of_the_ranks_parent_is_the_rank_that_is_missing() -> None:
    """Where NCCL counts for nobody."""
    report = diagnose(_without(_look("killed"), communicators=None))
    assert _named(report) == [("RRD107", "possible", ["python3 (pid 1384)"])], "the rank itself was not seen: the law allows no more"
    assert "killed by signal 9" in report.findings[0].summary
    snapshot = _without(_look("killed"), communicators=None)
    (node,) = snapshot.nodes
    strangers = tuple(replace(p, ppid=1) if p.state == "Z" else p for p in node.processes)
    report = diagnose(replace(snapshot, nodes=(replace(node, processes=strangers),)))
    assert ["python3 (pid 1384)"] not in [who for _, _, who in _named(report)]


@pytest.mark.parametrize("name", ["straggler", "kernel", "queued", "killed", "sleepy"])
def test_nobody_is_called_healthy_who_waits_for_a_card_that_nobody_measured(name: str) -> None:
    report = diagnose(_without(_look(name), communicators=None, gpus=None))
    assert report.verdict.state is not State.HEALTHY


def test_nobody_is_accused_of_what_runs_when_facts_are_missing() -> None:
    for facts in ({"communicators": None}, {"gpus": None}, {"communicators": None, "gpus": None}):
        report = diagnose(_without(_look("healthy"), **facts))
        assert (report.verdict.state, _named(report)) == (State.HEALTHY, [])


@pytest.mark.parametrize(("name", "cause"), [("straggler", "RRD101"), ("kernel", "RRD101"), ("bootstrap", "RRD101"), ("queued", "RRD103")])
def test_who_says_that_it_has_hung_for_an_hour_gets_a_sure_answer(name: str, cause: str) -> None:
    """A rank in a loop, one behind a kernel that does not end: in a run that has hung for so long, who is at it all the time keeps the others."""
    sure = diagnose(said_to_hang(_look(name), 3600.0))
    assert (sure.verdict.state, [(i, c) for i, c, _ in _named(sure)]) == (State.HANG, [(cause, "likely")])
    early = diagnose(said_to_hang(_look(name), 600.0))
    assert early.verdict.state is State.UNKNOWN, "a rare step may take ten minutes"
    assert diagnose(said_to_hang(_look("healthy"), 3600.0)).findings == ()


def test_the_evidence_names_the_call_in_c_and_the_counts() -> None:
    texts = [e.text for f in diagnose(_look("queued")).findings for e in f.evidence]
    assert any(t.endswith("there in C: cuStreamSynchronize (libcuda.so.580.159.04)") for t in texts)
    assert "all 3 ranks launched 5 AllReduce, and none more in 22 s" in texts
