"""Ranks that logs of Horovod call missing, in each of its forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Cause, Finding
from ray_rl_debug.rules.absent_ranks import absent_in

STALL = (
    "[1,0]<stderr>:[2021-04-02 11:20:10.188310: W horovod/common/stall_inspector.cc:105] One or more tensors were submitted to be reduced, "
    "gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds."
)


@pytest.mark.parametrize(
    ("line", "absent"),
    [
        ("HorovodBroadcast_step_0 [missing ranks: 1, 3]", (1, 3)),
        ("[1,0]<stderr>:2: [allreduce.grad_17, allreduce.grad_18 ...]", (2,)),
        ("HorovodAllreduce_head_0 [ready ranks: 5, 6, 3, 1, 4, 0]", (2,)),
        ("HorovodAllreduce_head_0 [ready ranks: 0, 1, 2]", ()),
        ("Ranks 2, 4 failed to pass monitoredBarrier in 30000 ms", (2, 4)),
        ("all ranks: [allreduce.grad_17]", ()),
        ("HorovodAllreduce_head_0 [ready ranks: 999999]", ()),
    ],
)
def test_a_line_names_those_that_have_not_come(line: str, absent: tuple[int, ...]) -> None:
    assert absent_in([line]) == absent


def first(folder: Path, text: str) -> Finding:
    (folder / "job.log").write_text(text)
    snapshot = load([folder / "job.log"]).snapshot
    assert snapshot is not None
    return next(f for f in diagnose(snapshot).findings if f.root)


@pytest.mark.parametrize(
    "below", ["[1,0]<stderr>:Missing ranks:\n[1,0]<stderr>:2: [allreduce.grad_17]\n", "HorovodAllreduce_a_0 [missing ranks: 2]\n"]
)
def test_the_missing_rank_is_the_straggler_and_never_more_than_possible(tmp_path: Path, below: str) -> None:
    finding = first(tmp_path, f"{STALL}\n{below}")
    assert (finding.cause, finding.certainty.value, [w.rank for w in finding.who]) == (Cause.STRAGGLER, "possible", [2])
    assert 2 not in [v.rank for v in finding.victims]


def test_a_warning_that_names_nobody_accuses_nobody(tmp_path: Path) -> None:
    assert [w.label for w in first(tmp_path, f"{STALL}\n").who] == ["a rank that did not come"]
