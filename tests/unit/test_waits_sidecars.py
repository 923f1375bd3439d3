"""Futures that a program beside a process delivers: a thread of a library takes its answers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.nodes import NodeKind, kind_of
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits_sidecars import sidecar_edges
from ray_rl_debug.model.snapshot import OpenFile, Process

PARENT, SIDE, WORKER = 100, 200, 300
POOLED = "Condition.wait@threading.py:327 Future.result@concurrent/futures/_base.py:451 main@app/train.py:20"
FILE = "torch/_inductor/compile_worker/subproc_pool.py"
TAKES = ("InductorSubproc", f"_recv_msg@{FILE}:76 SubprocPool._read_thread@{FILE}:271 Thread.run@threading.py:982")
ORDERS = f"_recv_msg@{FILE}:76 SubprocMain.main@{FILE}:378 main@torch/_inductor/compile_worker/__main__.py:74"
STARTS = "read@app/plugins.py:40 <module>@app/plugins.py:90"
MANAGER = "concurrent/futures/process.py"
POLLS = ("Thread-2", f"_ExecutorManagerThread.wait_result_broken_or_wakeup@{MANAGER}:417 _ExecutorManagerThread.run@{MANAGER}:344")
RESTS = "Queue.get@multiprocessing/queues.py:103 _process_worker@concurrent/futures/process.py:249"
BUILDS = "build@app/kernels.py:5 _process_worker@concurrent/futures/process.py:261"


def end(fd: int, *, writable: bool) -> OpenFile:
    return OpenFile(fd=fd, path="pipe:[61]", kind="pipe", inode=61, writable=writable)


def main(stacks: Stacks, *, fd: int | None = 10) -> Process:
    one = process(stacks, PARENT, "python train.py", POOLED, kind="named", extra_threads=[TAKES])
    first, takes = one.threads
    takes = replace(takes, call="read", wchan="anon_pipe_read", waits_on_fds=(fd,) if fd else None)
    return replace(
        one,
        threads=(first, replace(takes, call="read", wchan="anon_pipe_read", waits_on_fds=(fd,) if fd else None)),
        files=(end(10, writable=False),),
    )


def side(stacks: Stacks, text: str, *, workers: int) -> Process:
    one = process(stacks, SIDE, "python -m compile", text, kind="child", ppid=PARENT, extra_threads=[POLLS])
    first, polls = one.threads
    polls = replace(polls, call="poll", waits_on_fds=tuple(range(3, 5 + workers)))
    return replace(one, threads=(first, polls), files=(end(11, writable=True),))


def worker(stacks: Stacks, pid: int, text: str) -> Process:
    return replace(process(stacks, pid, "python", text, kind="child", ppid=SIDE), files=())


def edges(stacks: Stacks, *processes: Process) -> list[tuple[int, int | str]]:
    view = build_view(snapshot(stacks.node(list(processes))))
    found = list(sidecar_edges(view))
    assert {e.why for e in found} <= {Why.CHILD_QUEUE}
    ends = [(e.source, "unseen" if kind_of(e.target) is NodeKind.UNSEEN else int(e.target.rpartition("/")[2])) for e in found]
    return [(int(source.rpartition("/")[2]), target) for source, target in ends]


def test_a_future_leads_to_the_worker_of_the_program_beside() -> None:
    stacks = Stacks()
    family = [main(stacks), side(stacks, ORDERS, workers=2), worker(stacks, WORKER, RESTS), worker(stacks, 301, BUILDS)]
    assert edges(stacks, *family) == [(PARENT, SIDE), (SIDE, 301)]


def test_a_program_beside_that_has_no_work_keeps_nobody() -> None:
    stacks = Stacks()
    assert edges(stacks, main(stacks), side(stacks, ORDERS, workers=1), worker(stacks, WORKER, RESTS)) == []


def test_a_program_beside_that_does_something_else_may_deliver() -> None:
    stacks = Stacks()
    assert edges(stacks, main(stacks), side(stacks, STARTS, workers=1), worker(stacks, WORKER, RESTS)) == [(PARENT, SIDE)]


def test_a_worker_that_was_not_seen_may_have_the_work() -> None:
    stacks = Stacks()
    assert edges(stacks, main(stacks), side(stacks, ORDERS, workers=2), worker(stacks, WORKER, RESTS)) == [(PARENT, SIDE), (SIDE, "unseen")]


@pytest.mark.parametrize("fd", [None, 12])
def test_who_delivers_is_not_known_where_the_descriptor_was_not_read(fd: int | None) -> None:
    stacks = Stacks()
    family = [main(stacks, fd=fd), side(stacks, ORDERS, workers=1), worker(stacks, WORKER, BUILDS)]
    assert edges(stacks, *family) == [(PARENT, "unseen")]
