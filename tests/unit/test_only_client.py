"""A program that runs a job reads at the one connection that it has accepted: a part of its job should send something there."""

from __future__ import annotations

import pytest
from scenes import Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, State
from ray_rl_debug.model.snapshot import Socket

RECV, OPEN, SLEEP = 45, 257, 230
LISTENS = Socket(family="tcp", state="LISTEN", local="127.0.0.1:5000", inode=1, fd=3)
ACCEPTED = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:5000", remote="127.0.0.1:6000", inode=2, fd=4, rx_queue_bytes=0, quiet_s=20.0)
OTHER = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:5000", remote="127.0.0.1:6001", inode=4, fd=5)
THEIRS = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:6000", remote="127.0.0.1:5000", inode=3, fd=4)


@pytest.mark.parametrize(
    ("call", "wchan", "more", "state", "named"),
    [
        (OPEN, "wait_for_partner", (), State.HANG, 20),
        (SLEEP, "hrtimer_nanosleep", (), State.SLOW, None),
        (OPEN, "wait_for_partner", (OTHER,), State.HANG, 10),
    ],
    ids=["its client stands", "its client sleeps", "one of several"],
)
def test_the_client_owes_it_a_message(call: int, wchan: str, more: tuple[Socket, ...], state: State, named: int | None) -> None:
    stacks = Stacks()
    sockets = (LISTENS, ACCEPTED, *more)
    driver = process(
        stacks, 10, "python run.py", "main@/job/run.py:4", kind="named", ppid=1, wchan="wait_woken", syscall=RECV, arg0=4, sockets=sockets
    )
    client = process(stacks, 20, "python c.py", "work@/job/c.py:9", kind="child", ppid=10, wchan=wchan, syscall=call, arg0=0, sockets=(THEIRS,))
    report = diagnose(snapshot(stacks.node([driver, client])))
    assert report.verdict.state is state
    sure = [w.pid for f in report.findings if f.certainty is not Certainty.POSSIBLE for w in f.who]
    assert sure[:1] == ([named] if named is not None else [])
