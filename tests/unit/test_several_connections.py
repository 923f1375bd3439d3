"""A head that waits for any of several connections which it has made: no server without work, but one that waits for their other ends."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, State
from ray_rl_debug.model.snapshot import Process, Socket

EPOLL, RECV, SLEEP = 232, 45, 230
SELECTS = "EpollSelector.select@selectors.py:468 main@/job/head.py:44"
SERVES = "EpollSelector.select@selectors.py:468 serve_forever@socketserver.py:232 main@/job/head.py:44"


def end(inode: int, peer: int, fd: int) -> Socket:
    return Socket(family="unix", state="ESTABLISHED", local="", remote="", inode=inode, peer_inode=peer, fd=fd)


def worker(stacks: Stacks, number: int, call: int, wchan: str) -> Process:
    text = f"work@/job/worker.py:{number}"
    sockets = (end(200 + number, 100 + number, 4),)
    one = process(stacks, 20 + number, "python worker.py", text, kind="child", ppid=10, wchan=wchan, syscall=call, arg0=4, sockets=sockets)
    return replace(one, threads=(replace(one.threads[0], wakes_in_s=20.0 if call == SLEEP else None),))


def head(stacks: Stacks, text: str, *more: Socket) -> Process:
    sockets = (*(end(100 + n, 200 + n, 3 + n) for n in range(2)), *more)
    one = process(stacks, 10, "python head.py", text, kind="named", ppid=1, wchan="ep_poll", syscall=EPOLL, arg0=9, sockets=sockets)
    return replace(one, threads=(replace(one.threads[0], waits_on_fds=tuple(s.fd for s in sockets if s.fd is not None)),))


def test_all_wait_for_each_other() -> None:
    stacks = Stacks()
    workers = [worker(stacks, n, RECV, "unix_stream_read_generic") for n in range(2)]
    report = diagnose(snapshot(stacks.node([head(stacks, SELECTS), *workers])))
    assert report.verdict.state is State.HANG
    assert {w.pid for w in report.findings[0].who} == {10, 20, 21}


def test_one_of_them_sleeps_and_will_answer() -> None:
    stacks = Stacks()
    workers = [worker(stacks, 0, RECV, "unix_stream_read_generic"), worker(stacks, 1, SLEEP, "hrtimer_nanosleep")]
    report = diagnose(snapshot(stacks.node([head(stacks, SELECTS), *workers])))
    assert report.verdict.state is State.SLOW
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


@pytest.mark.parametrize(
    ("text", "more"),
    [(SERVES, ()), (SELECTS, (Socket(family="tcp", state="LISTEN", local="127.0.0.1:5000", inode=1, fd=8),))],
    ids=["a library serves", "it listens there too"],
)
def test_a_server_waits_for_nobody(text: str, more: tuple[Socket, ...]) -> None:
    stacks = Stacks()
    workers = [worker(stacks, n, SLEEP, "hrtimer_nanosleep") for n in range(2)]
    report = diagnose(snapshot(stacks.node([head(stacks, text, *more), *workers])))
    assert report.verdict.state in (State.SLOW, State.HEALTHY)
    assert "head.py" not in report.verdict.summary
