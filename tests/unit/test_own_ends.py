"""A reader that has kept its own copy of the writing end of a pipe reads on when the program that wrote there has died."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import EXECUTOR, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, Report, State
from ray_rl_debug.model.snapshot import OpenFile

DRIVER, SERVER, TOOL, OTHER = 1, 100, 200, 201
READS = OpenFile(fd=5, path="pipe:[77]", kind="pipe", inode=77, writable=False)
KEPT = replace(READS, fd=6, writable=True)


def told(*, kept: bool = True, has_ended: bool = True, beside: bool = False, other: tuple[OpenFile, ...] | None = ()) -> Report:
    """An actor that reads from a pipe; its tool, a child, and another child that holds these files."""
    stacks = Stacks()
    threads = [("writer", "send@app/server.py:40 Thread.run@threading.py:982")] if beside else []
    text = f"Server.generate@app/server.py:9 {EXECUTOR} {MAIN}"
    server = process(stacks, SERVER, "ray::Server.generate", text, wchan="pipe_read", syscall=0, arg0=5, extra_threads=threads)
    server = replace(server, files=(READS, KEPT) if kept else (READS,))
    tool = process(stacks, TOOL, "python tool.py", "main@app/tool.py:4", kind="child", ppid=SERVER, wchan="hrtimer_nanosleep", syscall=230)
    tool = replace(tool, files=(replace(KEPT, fd=3),))
    if has_ended:
        tool = replace(tool, state="Z", exit_code=-9, samples=(), threads=(), files=())
    helper = replace(process(stacks, OTHER, "python log.py", "main@app/log.py:4", kind="child", ppid=SERVER), files=other)
    driver = process(stacks, DRIVER, "driver", f"{RAY_GET} main@app/main.py:30", kind="driver", refs=[task_id(1)])
    ray = ray_state(actors=[actor(0, "Server", SERVER)], cores=[core(SERVER, running=[1], actor_number=0)])
    return diagnose(snapshot(stacks.node([driver, server, tool, helper]), ray))


def test_the_dead_writer_is_named_and_how_it_ended() -> None:
    report = told()
    first = report.findings[0]
    assert (report.verdict.state, first.cause, [w.pid for w in first.who]) == (State.HANG, Cause.PRODUCER_DIED, [TOOL])
    assert any("has ended by signal 9" in e.text for e in first.evidence)
    assert any("only the reader still holds the other end" in e.text for e in first.evidence)
    assert not any("mount" in line for line in first.remedy)


@pytest.mark.parametrize(
    "scene",
    [{"has_ended": False}, {"beside": True}, {"kept": False, "other": (replace(KEPT, fd=3),)}],
    ids=["it lives", "a thread of its own may write", "another child holds the other end"],
)
def test_it_is_not_named_where_somebody_else_may_write(scene: dict[str, object]) -> None:
    report = told(**scene)  # type: ignore[arg-type]
    assert not any(
        f.cause is Cause.PRODUCER_DIED and f.certainty is not Certainty.POSSIBLE and [w.pid for w in f.who] == [TOOL] for f in report.findings
    )


def test_a_child_that_was_not_read_may_hold_the_other_end() -> None:
    assert told(other=None).verdict.state is not State.HANG
