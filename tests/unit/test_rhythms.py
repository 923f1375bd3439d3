"""Who sleeps for a moment, comes back to it again and again, and is not to blame: its end is awaited, or what it looks for may be brought."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import EndedProcess, Node, OpenFile, Process

READ, WAIT = 0, 61
LOOK_S = 20.0
SLEEPS = {"wchan": "hrtimer_nanosleep", "syscall": 230}


def looked_at(stacks: Stacks, *processes: Process, goes_round: bool | None = None, looks: tuple[str, ...] | None = None) -> Report:
    """A look that is longer than the pauses, each of which ends within seconds; the line of ``looks@`` is as told."""
    longer = [
        replace(p, window_s=LOOK_S, threads=tuple(replace(t, wakes_in_s=5.0 if t.syscall == 230 else None, run_slices=8) for t in p.threads))
        for p in processes
    ]
    node: Node = stacks.node(longer)
    frames = tuple(replace(f, goes_round=goes_round, looks=looks) if f.function == "looks" else f for f in node.frames)
    return diagnose(snapshot(replace(node, frames=frames, window_s=LOOK_S)))


@pytest.mark.parametrize("goes_round", [True, False])
def test_the_end_of_who_keeps_a_rhythm_may_be_awaited(goes_round: bool) -> None:
    stacks = Stacks()
    driver = process(stacks, 10, "python run.py", "main@/job/run.py:4", kind="named", ppid=1, wchan="do_wait", syscall=WAIT, arg0=20)
    member = process(stacks, 20, "python member.py", "looks@/job/member.py:23", kind="child", ppid=10, **SLEEPS)
    report = looked_at(stacks, driver, member, goes_round=goes_round)
    assert report.verdict.state is State.SLOW
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


def looks_for_engine(helper: bool, looks: tuple[str, ...]) -> Report:
    """A driver waits for what a child prints, which tries again and again to reach an engine; with or without another child that sleeps."""
    stacks = Stacks()
    driver = process(stacks, 10, "python run.py", "main@/job/run.py:4", kind="named", ppid=1, wchan="do_wait", syscall=WAIT, arg0=20)
    client = process(stacks, 20, "python client.py", "looks@/job/client.py:23", kind="child", ppid=10, **SLEEPS)
    engine = process(stacks, 30, "python engine.py", "load@/job/engine.py:23", kind="child", ppid=20, **SLEEPS)
    return looked_at(stacks, driver, client, *([engine] if helper else []), goes_round=False, looks=looks)


def test_who_sleeps_may_bring_what_another_looks_for() -> None:
    report = looks_for_engine(True, ("urlopen",))
    assert report.verdict.state is State.SLOW
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


def test_nobody_else_is_there_who_brings_it() -> None:
    report = looks_for_engine(False, ("urlopen",))
    assert report.verdict.state is State.UNKNOWN
    assert [w.pid for w in report.findings[0].who] == [20]


def test_no_other_process_changes_its_variables() -> None:
    assert looks_for_engine(True, ()).verdict.state is State.UNKNOWN


@pytest.mark.parametrize("is_python", [True, False], ids=["a program", "a shell"])
def test_a_script_goes_on_to_a_program_that_was_not_there_before(is_python: bool) -> None:
    stacks = Stacks()
    driver = process(stacks, 10, "python run.py", "main@/job/run.py:4", kind="named", ppid=1, wchan="do_wait", syscall=WAIT, arg0=20)
    script = process(stacks, 20, "script", "run@/job/script.py:23", kind="child", ppid=10, wchan="do_wait", syscall=WAIT, arg0=4242)
    script = replace(script, python="3.11", start_time_s=1.0) if is_python else replace(script, samples=(), python=None, comm="sh", start_time_s=1.0)
    report = looked_at(stacks, driver, script)
    assert report.verdict.state is State.SLOW
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


@pytest.mark.parametrize(("ended", "state"), [(True, State.SLOW), (False, State.UNKNOWN)], ids=["it has had a child before", "none ended"])
def test_the_next_child_holds_a_pipe_that_nobody_held_before(ended: bool, state: State) -> None:
    """However old its reader is: its age says nothing of this one wait."""
    stacks = Stacks()
    driver = process(stacks, 10, "python run.py", "main@/job/run.py:4", kind="named", ppid=1, wchan="do_wait", syscall=WAIT, arg0=20)
    reader = process(stacks, 20, "python rank.py", "read@/job/rank.py:23", kind="child", ppid=10, wchan="anon_pipe_read", syscall=READ, arg0=5)
    pipe = OpenFile(fd=5, path="pipe:[77]", kind="pipe", inode=77, writable=False)
    before = (EndedProcess(pid=30, ppid=20, title="tool", kind="child"),) if ended else ()
    node = stacks.node([replace(driver, files=()), replace(reader, files=(pipe,), start_time_s=1.0)], ended=before)
    report = diagnose(snapshot(node))
    assert report.verdict.state is state
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


def test_the_end_of_a_launcher_is_that_of_its_ranks() -> None:
    """Its own clock and its idle loop say nothing."""
    stacks = Stacks()
    agent = "SimpleElasticAgent._invoke_run@torch/distributed/elastic/agent/server/api.py:915 main@torch/distributed/run.py:900"
    driver = process(stacks, 10, "python run.py", "main@/job/run.py:4", kind="named", ppid=1, wchan="do_wait", syscall=WAIT, arg0=20)
    launcher = process(stacks, 20, "torch.distributed.run", agent, kind="child", ppid=10, **SLEEPS)
    rank = process(stacks, 30, "python train.py", "train@/job/train.py:23", kind="child", ppid=20, **SLEEPS)
    rank = replace(rank, threads=(replace(rank.threads[0], wakes_in_s=20.0),))
    report = diagnose(snapshot(stacks.node([driver, launcher, rank])))
    assert report.verdict.state is State.SLOW
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)
