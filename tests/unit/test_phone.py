"""Verdicts for a telephone: what happens and who is the cause come first, in a few lines, whatever the report is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.codec import read_snapshot
from ray_rl_debug.model.report import Cause, Certainty, Finding, Report, State, Verdict, Who
from ray_rl_debug.render.phone import HEADLINE_CHARS, TEXT_CHARS, best_finding, clipped, duration, headline, phone_text

CASES = Path(__file__).parent.parent / "cases"
BEST = Finding(
    id="RRD502", name="blocked in I/O", cause=Cause.BLOCKED_IO, certainty=Certainty.LIKELY, summary="s", root=True,
    who=(Who(label="actor/3"),), victims=tuple(Who(label=f"actor/{i}") for i in range(12)), remedy=("look at the server at the other end",),
)  # fmt: skip
REPORT = Report(verdict=Verdict(state=State.HANG, summary="actor/3 waits", certainty=Certainty.LIKELY), findings=(BEST,))


def test_three_lines() -> None:
    assert phone_text(REPORT, job_id="02000000", age_s=45.0) == (
        "HANG: actor/3, blocked in I/O; 12 wait\njob 02000000, likely, no progress for 45 s\n> look at the server at the other end"
    )
    assert phone_text(REPORT, job_id="02000000", age_s=0.0, has_recovered=True) == "RUNS AGAIN: was blocked in I/O, actor/3\njob 02000000"


def test_a_job_that_ended_has_no_time_without_progress() -> None:
    ended = Report(verdict=Verdict(state=State.FINISHED, summary="no step", certainty=Certainty.LIKELY), findings=(BEST,))
    assert phone_text(ended, job_id="02000000", age_s=45.0).splitlines()[:2] == ["FINISHED: actor/3, blocked in I/O", "job 02000000, likely"]


def test_a_verdict_that_accuses_nobody_says_its_summary() -> None:
    nobody = Report(verdict=Verdict(state=State.UNKNOWN, summary="nothing moves, and no rule says why", certainty=Certainty.POSSIBLE))
    assert headline(nobody) == "UNKNOWN: nothing moves, and no rule says why"
    assert headline(nobody, has_recovered=True) == "RUNS AGAIN"


@pytest.mark.parametrize("many", [1, 3, 500])
@pytest.mark.parametrize("label", ["actor/3", "x" * 400, "a\nb\x1b[31m", "名" * 90, ""])
def test_length_is_bounded_whatever_names_there_are(label: str, many: int) -> None:
    who = tuple(Who(label=f"{label}{i}" if many > 1 else label) for i in range(many))
    best = Finding(
        id="RRD502", name="n" * 300, cause=Cause.BLOCKED_IO, certainty=Certainty.LIKELY, summary="s", root=True,
        who=who, victims=BEST.victims, remedy=("r" * 900,),
    )  # fmt: skip
    report = Report(verdict=Verdict(state=State.HANG, summary="s" * 5000, certainty=Certainty.LIKELY), findings=(best,))
    for has_recovered in (False, True):
        text = phone_text(report, job_id="j" * 500, age_s=1e6, has_recovered=has_recovered)
        assert len(text) <= TEXT_CHARS
        assert len(headline(report, has_recovered=has_recovered)) <= HEADLINE_CHARS
        assert all(c.isprintable() for c in text.replace("\n", ""))


@pytest.mark.parametrize("rule", ["RRD101", "RRD206", "RRD301", "RRD402", "RRD502", "RRD504"])
def test_recorded_hangs_name_their_culprit_on_a_lock_screen(rule: str) -> None:
    report = diagnose(read_snapshot(CASES / rule / "hang.json.gz"))
    best = best_finding(report)
    assert best is not None
    text = phone_text(report, job_id="02000000", age_s=600.0)
    assert best.who[0].label[:24] in text[:60]
    assert len(text) <= TEXT_CHARS
    assert len(text.splitlines()) == 3


def test_durations_and_cuts() -> None:
    assert [duration(s) for s in (5, 119, 120, 7199, 11_100)] == ["5 s", "119 s", "2 min", "119 min", "3 h 5 min"]
    assert clipped("one two three four", 12) == "one two…"
    assert clipped("one\n  two", 12) == "one two"
    assert clipped("o" * 20, 5) == "oooo…"
