"""Ranks that meet others in a thread behind their training: checkpoints that are written while the next step runs."""

from __future__ import annotations

from scenes import ALL_REDUCE, BARRIER, RECV, Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report

RUN = "run@/srv/train.py:{line} <module>@/srv/train.py:60"
JOINS = f"Thread._wait_for_tstate_lock@threading.py:1119 Thread.join@threading.py:1100 {RUN.format(line=38)}"
TRAINS = f"{ALL_REDUCE} {RUN.format(line=36)}"
THREAD = "save@/srv/train.py:22 Thread.run@threading.py:982 Thread._bootstrap_inner@threading.py:1045"
MEETS = f"{BARRIER} {THREAD}"
UPLOADS = f"upload@/srv/storage.py:5 {THREAD}"


def _report(*ranks: tuple[str, str]) -> Report:
    stacks = Stacks()
    processes = [
        process(stacks, 100 + rank, "python train.py", main, rank=rank, size=len(ranks), kind="named", extra_threads=[("saver", saver)])
        for rank, (main, saver) in enumerate(ranks)
    ]
    return diagnose(snapshot(stacks.node(processes)))


def test_rank_whose_thread_does_not_come_is_named() -> None:
    report = _report((JOINS, MEETS), (JOINS, UPLOADS), (JOINS, MEETS))
    assert [w.rank for w in report.findings[0].who] == [1]


def test_rank_that_has_joined_in_a_thread_is_not_waited_for() -> None:
    """Rank 0 has finished its step and waits for its checkpoint; rank 1 has written its own already, rank 2 still does, and both train."""
    report = _report((JOINS, MEETS), (TRAINS, MEETS), (TRAINS, UPLOADS))
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)
    assert all(1 not in [w.rank for w in f.who] for f in report.findings)


def test_threads_that_receive_for_a_queue_wait_for_any_of_their_peers() -> None:
    """Rank 1 waits for rank 0, which waits for what its threads receive; rank 2 does not send."""
    main = f"Condition.wait@threading.py:327 Queue.get@queue.py:171 {RUN.format(line=40)}"
    receives = f"{RECV} receive@/srv/train.py:18 Thread.run@threading.py:982 Thread._bootstrap_inner@threading.py:1045"
    stacks = Stacks()
    processes = [
        process(stacks, 100, "python train.py", main, rank=0, size=3, kind="named", extra_threads=[("from-1", receives), ("from-2", receives)]),
        process(stacks, 101, "python train.py", f"{RECV} sample@/srv/train.py:44", rank=1, size=3, kind="named"),
        process(stacks, 102, "python train.py", "load@/srv/train.py:48", rank=2, size=3, kind="named"),
    ]
    report = diagnose(snapshot(stacks.node(processes)))
    assert report.findings == () or all(0 not in [w.rank for w in f.who] for f in report.findings)
