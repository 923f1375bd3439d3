"""Waits for children: which child it is, what a pool's workers owe, and what is not known when one of them was not seen or not read."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.handlers import waiting_thread
from ray_rl_debug.analyze.nodes import NodeKind, kind_of
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits_children import child_edges
from ray_rl_debug.model.snapshot import OpenFile, Process

PARENT, FIRST, SECOND = 100, 4000, 4001
READ, WAIT = 0, 61
SPAWN = "BaseProcess._bootstrap@multiprocessing/process.py:314 _main@multiprocessing/spawn.py:135 spawn_main@multiprocessing/spawn.py:122"
RECEIVE = "Connection._recv@multiprocessing/connection.py:395 Connection.recv@multiprocessing/connection.py:250"
RESTS = f"{RECEIVE} answer_jobs@app/rewards.py:16 BaseProcess.run@multiprocessing/process.py:108 {SPAWN}"
WORKS = f"score@app/rewards.py:5 answer_jobs@app/rewards.py:17 {SPAWN}"
TRACKER = "main@multiprocessing/resource_tracker.py:227 <module>@<string>:1"
JOINS = "Popen.poll@multiprocessing/popen_fork.py:27 BaseProcess.join@multiprocessing/process.py:149 main@app/train.py:9"
GETS = f"{RECEIVE} main@app/train.py:20"
POOLED = "Condition.wait@threading.py:327 Future.result@concurrent/futures/_base.py:451 main@app/train.py:20"
MANAGES = ("Thread-1", "select@selectors.py:415 wait@multiprocessing/connection.py:948 _ExecutorManagerThread.run@concurrent/futures/process.py:351")
RESULTS = OpenFile(fd=5, path="pipe:[77]", kind="pipe", inode=77, writable=True)


def child(stacks: Stacks, pid: int, *texts: str, files: tuple[OpenFile, ...] = ()) -> Process:
    return replace(process(stacks, pid, "python train.py", *texts, kind="child", ppid=PARENT, wchan="anon_pipe_read"), files=files)


def targets(stacks: Stacks, parent: Process, *children: Process) -> list[tuple[str, Why]]:
    """Whom the parent waits for: pids, or ``unseen``."""
    view = build_view(snapshot(stacks.node([parent, *children])))
    one = view.seen[f"node1/{PARENT}"]
    edges = child_edges(view, one, waiting_thread(one))
    return [("unseen" if kind_of(e.target) is NodeKind.UNSEEN else e.target.rpartition("/")[2], e.why) for e in edges]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (FIRST, [("4000", Why.CHILD)]),
        (3999, [("unseen", Why.PIPE)]),
        (0xFFFFFFFF, [("4000", Why.CHILD), ("4001", Why.CHILD)]),
        (1, [("4000", Why.CHILD), ("4001", Why.CHILD)]),
        (None, [("4000", Why.CHILD), ("4001", Why.CHILD)]),
    ],
    ids=["one that was seen", "one that was not", "any child", "a sort of number", "not read"],
)
def test_the_kernel_tells_for_which_child_somebody_waits(wanted: int | None, found: list[tuple[str, Why]]) -> None:
    stacks = Stacks()
    parent = process(stacks, PARENT, "python train.py", JOINS, kind="named", wchan="do_wait", syscall=WAIT, arg0=wanted)
    assert targets(stacks, parent, child(stacks, FIRST, WORKS), child(stacks, SECOND, WORKS)) == found


def test_nobody_waits_for_the_tracker_of_multiprocessing() -> None:
    stacks = Stacks()
    parent = process(stacks, PARENT, "python train.py", JOINS, kind="named", wchan="do_wait", syscall=WAIT)
    assert targets(stacks, parent, child(stacks, FIRST, TRACKER), child(stacks, SECOND, RESTS)) == [("4001", Why.CHILD)]


def test_a_worker_met_between_two_tasks_is_at_work() -> None:
    """It rests at the last look and was elsewhere before: no task is lost."""
    stacks = Stacks()
    parent = process(stacks, PARENT, "python train.py", GETS, kind="named", wchan="futex_do_wait")
    busy = child(stacks, SECOND, WORKS, WORKS, RESTS)
    assert targets(stacks, parent, child(stacks, FIRST, RESTS), busy) == [("4001", Why.CHILD_QUEUE)]
    assert targets(stacks, parent, child(stacks, FIRST, RESTS), child(stacks, SECOND, RESTS)) == []


@pytest.mark.parametrize(("polled", "found"), [((7, 12), []), ((7, 12, 13), [("unseen", Why.CHILD_QUEUE)]), (None, [("unseen", Why.CHILD_QUEUE)])])
def test_a_pool_that_waits_for_the_end_of_no_worker_has_none(polled: tuple[int, ...] | None, found: list[tuple[str, Why]]) -> None:
    """The thread that takes results polls their pipe and one that wakes it, and a descriptor for each worker."""
    stacks = Stacks()
    polls = MANAGES[1].replace(
        "_ExecutorManagerThread.run",
        "_ExecutorManagerThread.wait_result_broken_or_wakeup@concurrent/futures/process.py:417 _ExecutorManagerThread.run",
    )
    parent = process(stacks, PARENT, "python train.py", POOLED, kind="named", wchan="futex_do_wait", extra_threads=[(MANAGES[0], polls)])
    main, manager = parent.threads
    parent = replace(parent, threads=(main, replace(manager, call="poll", waits_on_fds=polled)))
    assert targets(stacks, parent, child(stacks, FIRST, TRACKER)) == found


def test_a_future_of_a_pool_all_of_whose_workers_rest_is_with_one_that_was_not_seen() -> None:
    stacks = Stacks()
    parent = process(stacks, PARENT, "python train.py", POOLED, kind="named", wchan="futex_do_wait", extra_threads=[MANAGES])
    assert targets(stacks, parent, child(stacks, FIRST, RESTS)) == [("unseen", Why.CHILD_QUEUE)]
    assert targets(stacks, parent, child(stacks, FIRST, RESTS), child(stacks, SECOND, WORKS)) == [("4001", Why.CHILD_QUEUE)]


@pytest.mark.parametrize(
    ("first", "inode", "found"),
    [
        (RESTS, 77, ["4001"]),
        (RESTS, None, ["4001"]),
        (RESTS, 78, ["4001"]),
        (WORKS, 78, ["4000"]),
        (WORKS, None, ["4000", "4001"]),
    ],
    ids=["it holds the pipe", "not read", "nobody else works", "another works that holds it", "another works, and it was not read"],
)
def test_a_child_that_may_write_the_result(first: str, inode: int | None, found: list[str]) -> None:
    """The first child holds the pipe that the parent reads."""
    stacks = Stacks()
    reads = replace(RESULTS, fd=3, writable=False)
    parent = process(stacks, PARENT, "python train.py", GETS, kind="named", wchan="anon_pipe_read", syscall=READ, arg0=3)
    rests, works = child(stacks, FIRST, first, files=(RESULTS,)), child(stacks, SECOND, WORKS, files=(replace(RESULTS, inode=inode),))
    assert [target for target, _ in targets(stacks, replace(parent, files=(reads,)), rests, works)] == found


COMMUNICATES = "Popen.communicate@subprocess.py:1196 run@subprocess.py:550 run_tool@app/tools.py:36"


def test_who_reads_what_a_program_prints_waits_for_those_who_hold_its_pipe() -> None:
    """The shell has ended and left a server behind: the end of the output never comes, and another child has no part in it."""
    stacks = Stacks()
    reads = replace(RESULTS, fd=7, writable=False)
    parent = process(stacks, PARENT, "python train.py", COMMUNICATES, kind="named", wchan="anon_pipe_read", syscall=READ, arg0=7)
    parent = replace(parent, files=(reads,))
    scorer = child(stacks, FIRST, RESTS, files=(replace(RESULTS, inode=78),))
    shell = replace(child(stacks, 4002, WORKS), state="Z", samples=(), files=())
    server = replace(child(stacks, SECOND, WORKS, files=(RESULTS,)), ppid=1)
    assert targets(stacks, parent, scorer, shell, server) == [("4001", Why.PIPE)]
    assert targets(stacks, parent, scorer, shell) == [("unseen", Why.PIPE)]
    living = child(stacks, 4003, WORKS, files=(RESULTS,))
    assert targets(stacks, parent, scorer, living) == [("4003", Why.CHILD)]
    assert targets(stacks, parent, replace(child(stacks, FIRST, WORKS), files=None), living) == [("4000", Why.CHILD), ("4003", Why.CHILD)]
