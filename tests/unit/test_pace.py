"""The pace of a run, as its companion knows it: how long an answer of a service outside may be awaited."""

from __future__ import annotations

import pytest
from scenes import EXECUTOR, MAIN, Stacks, actor, core, process, ray_state, snapshot

from ray_rl_debug.analyze.pace import answer_s, with_pace
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, State
from ray_rl_debug.model.snapshot import Snapshot, Socket

ASKS = f"recv@app/tool.py:9 ask_tool@app/agent.py:20 {EXECUTOR} {MAIN}"


def asked(quiet_s: float) -> Snapshot:
    """A rank that waits for a service elsewhere, which has been quiet for so long."""
    stacks = Stacks()
    tool = Socket(inode=9, fd=5, local="10.0.0.1:40000", remote="10.9.9.9:80", state="ESTABLISHED", family="tcp", quiet_s=quiet_s)
    one = process(stacks, 100, "ray::Agent.rollout", ASKS, wchan="sk_wait_data", syscall=45, arg0=5, sockets=(tool,))
    return snapshot(stacks.node([one]), ray_state(actors=[actor(0, "Agent", 100)], cores=[core(100, running=[1], actor_number=0)]))


@pytest.mark.parametrize(("step_s", "wanted"), [(None, 900.0), (1.0, 10.0), (6.0, 15.0), (50.0, 60.0)])
def test_a_few_of_the_longest_steps_but_no_more_than_a_minute_where_they_are_known(step_s: float | None, wanted: float) -> None:
    assert answer_s(with_pace(asked(5.0), step_s)) == wanted


def test_a_quiet_service_is_sure_only_where_the_run_is_known_to_be_fast() -> None:
    unknown, fast, slow = (diagnose(with_pace(asked(25.0), step_s)) for step_s in (None, 6.0, 20.0))
    assert [f.certainty for f in unknown.findings] == [Certainty.POSSIBLE]
    assert [f.certainty for f in slow.findings] == [Certainty.POSSIBLE]
    assert fast.verdict.state is State.HANG
    assert [f.certainty for f in fast.findings] == [Certainty.LIKELY]


@pytest.mark.parametrize(("step_s", "wanted"), [(None, "900 s"), (20.0, "50 s")])
def test_the_report_says_how_long_an_answer_of_this_run_may_take(step_s: float | None, wanted: str) -> None:
    report = diagnose(with_pace(asked(25.0), step_s))
    said = f"it has been quiet for 25 s, and an answer may take {wanted}"
    assert report.verdict.state is State.SLOW
    assert report.verdict.summary.startswith(f"10.9.9.9:80 may go on by itself ({said}): Agent")
    assert any(said in e.text for e in report.findings[0].evidence)
