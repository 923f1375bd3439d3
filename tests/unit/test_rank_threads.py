"""Ranks that meet others in a thread behind their training: checkpoints that are written while the next step runs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace
from scenes import ALL_REDUCE, BARRIER, RECV, Stacks, process, snapshot

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.rank_threads import Beside, any_peer_edges, others, receiver_edges, stray_edges
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.worlds import World, find_worlds
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report
from ray_rl_debug.model.snapshot import Local

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


TAKES = f"Condition.wait@threading.py:327 Queue.get@queue.py:171 {RUN.format(line=40)}"
RECEIVES = f"{RECV} receive@/srv/train.py:18 Thread.run@threading.py:982 Thread._bootstrap_inner@threading.py:1045"
LOADS = f"load@/srv/train.py:48 {RUN.format(line=48)}"


def _world(*ranks: tuple[str, list[tuple[str, str]]], peers: tuple[str, ...] = ()) -> World:
    """Ranks of one world, each with its further threads; `peers` are the sources that the receiving threads of rank 0 name."""
    stacks = Stacks()
    found = [
        process(stacks, 100 + rank, "python train.py", main, rank=rank, size=len(ranks), kind="named", extra_threads=threads)
        for rank, (main, threads) in enumerate(ranks)
    ]
    samples = []
    for sample in found[0].samples:
        named = [replace(t, locals=(Local(frame=0, name="src", value=p),)) for t, p in zip(sample.threads[1:], peers, strict=False)]
        samples.append(replace(sample, threads=(sample.threads[0], *named, *sample.threads[1 + len(named) :])))
    found[0] = replace(found[0], samples=tuple(samples))
    (world,) = find_worlds(build_view(snapshot(stacks.node(found))))
    return world


def _told(edges: Iterable[Edge]) -> list[tuple[str, Certainty]]:
    found = list(edges)
    assert all(e.why is Why.RECEIVERS for e in found)
    return [(e.target.rpartition("/")[2], e.certainty) for e in found]


def test_threads_that_receive_lead_to_the_ranks_that_they_name() -> None:
    two = [("from-1", RECEIVES), ("from-2", RECEIVES)]
    named = _world((TAKES, two), (LOADS, []), (LOADS, []), peers=("1", "2"))
    assert _told(receiver_edges(named)) == [("101", Certainty.LIKELY), ("102", Certainty.LIKELY)]


def test_threads_whose_peers_were_not_read_may_receive_from_any() -> None:
    two = [("from-1", RECEIVES), ("from-2", RECEIVES)]
    unread = _world((TAKES, two), (LOADS, []), (LOADS, []), peers=("1",))
    assert _told(receiver_edges(unread)) == [("101", Certainty.LIKELY), ("101", Certainty.POSSIBLE), ("102", Certainty.POSSIBLE)]


def test_threads_that_name_a_rank_that_was_not_seen_wait_for_it() -> None:
    two = [("from-1", RECEIVES), ("from-2", RECEIVES)]
    world = _world((TAKES, two), (LOADS, []), peers=("1", "2"))
    found = _told(receiver_edges(replace(world, size=3, missing=(2,))))
    assert found == [("101", Certainty.LIKELY), ("2", Certainty.POSSIBLE)]


@pytest.mark.parametrize(
    ("main", "threads"),
    [
        (LOADS, [("from-1", RECEIVES), ("from-2", RECEIVES)]),
        (TAKES, [("from-1", RECEIVES)]),
        (TAKES, [("from-1", RECEIVES), ("saver", UPLOADS)]),
    ],
    ids=["its main thread works", "only one receives: by it the rank is seen", "another thread may end the wait"],
)
def test_a_rank_that_does_not_wait_for_its_receiving_threads(main: str, threads: list[tuple[str, str]]) -> None:
    assert list(receiver_edges(_world((main, threads), (LOADS, []), peers=("1", "1")))) == []


def test_a_process_of_no_world_whose_threads_receive_waits_for_somebody() -> None:
    """Its rank was not read."""
    two = [("from-1", RECEIVES), ("from-2", RECEIVES)]
    stacks = Stacks()
    view = build_view(snapshot(stacks.node([process(stacks, 100, "python train.py", TAKES, kind="named", extra_threads=two)])))
    assert _told(stray_edges(view, [])) == [("what its threads receive", Certainty.PROVEN)]
    world = _world((TAKES, two), (LOADS, []))
    assert _told(stray_edges(view, [replace(world, members=tuple(view))])) == []


def test_who_names_no_peer_waits_for_any_other_rank() -> None:
    world = _world((f"{RECV} {RUN.format(line=40)}", []), (TRAINS, []), (TRAINS, []))
    edges = list(any_peer_edges(world, world.members[0], "recv"))
    assert _told(edges) == [("101", Certainty.LIKELY), ("102", Certainty.LIKELY)]
    assert {e.op for e in edges} == {"recv"}


def test_what_the_threads_of_a_rank_are_in_beside_the_one_by_which_it_is_seen() -> None:
    """Rank 1 trains, and has joined the barrier in a thread; rank 2 trains, and its saver is elsewhere."""
    world = _world((JOINS, [("saver", MEETS)]), (TRAINS, [("saver", MEETS)]), (TRAINS, [("saver", UPLOADS)]))
    saves, joined, absent = world.members
    beside = Beside(world.members)
    assert saves.place is not None
    site = (saves.place.op, saves.place.path)
    assert [beside.has_joined(one, site) for one in world.members] == [False, True, False]
    assert beside.certainty(saves, absent, Certainty.LIKELY) is Certainty.POSSIBLE
    assert beside.certainty(joined, absent, Certainty.LIKELY) is Certainty.LIKELY


def test_others_are_the_threads_that_do_something_of_their_own() -> None:
    idle = "wait@threading.py:327 get@queue.py:171 worker@concurrent/futures/thread.py:81"
    world = _world((TRAINS, [("saver", UPLOADS), ("pool", idle)]), (TRAINS, []))
    assert [t.name for t in others(world.members[0])] == ["saver"]
