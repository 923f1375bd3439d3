"""A connection that nobody has accepted waits for all who have the queue in which it stands, not for the first of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import EXECUTOR, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.edges import Edge
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Snapshot, Socket

DRIVER, CLIENT, MASTER, WORKER = 1, 100, 200, 201
LISTENS = Socket(family="tcp", state="LISTEN", local="127.0.0.1:80", remote=None, fd=3, inode=7, rx_queue_bytes=1)


LOADS = "load@app/serve.py:51 <module>@app/serve.py:92"
RESTS = (
    "Connection._recv@multiprocessing/connection.py:395 Connection.recv@multiprocessing/connection.py:250 Queue.get@multiprocessing/queues.py:103 "
    "worker@multiprocessing/pool.py:114 BaseProcess.run@multiprocessing/process.py:108"
)


def taken(worker: Socket | None, *, accepted: bool = False, does: str = LOADS) -> Snapshot:
    """A client asks a server that has forked a worker; both sleep, the worker for some seconds more."""
    stacks = Stacks()
    end = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:5000", remote="127.0.0.1:80", fd=9)
    asks = f"SocketIO.readinto@socket.py:706 Rollout.play@app/play.py:7 {EXECUTOR} {MAIN}"
    client = process(stacks, CLIENT, "ray::Rollout.play", asks, wchan="wait_woken", syscall=45, arg0=9, sockets=[end])
    driver = process(stacks, DRIVER, "driver", f"{RAY_GET} main@app/main.py:30", kind="driver", refs=[task_id(1)])
    sleeps = "serve@app/serve.py:60 <module>@app/serve.py:92"
    master = process(stacks, MASTER, "python serve.py", sleeps, kind="child", ppid=DRIVER, wchan="hrtimer_nanosleep", sockets=[LISTENS])
    own = [] if worker is None else [worker]
    own += [replace(end, local=end.remote or "", remote=end.local, fd=4)] if accepted else []
    child = process(stacks, WORKER, "python serve.py", does, kind="child", ppid=MASTER, wchan="hrtimer_nanosleep", sockets=own)
    child = replace(child, threads=(replace(child.threads[0], call="clock_nanosleep", wakes_in_s=12.0),))
    ray = ray_state(actors=[actor(0, "Rollout", CLIENT)], cores=[core(CLIENT, running=[1], actor_number=0)])
    return snapshot(stacks.node([driver, client, master, child]), ray)


def to_server(shot: Snapshot) -> list[Edge]:
    return [e for e in find_waits(build_view(shot)).graph.edges if e.source == f"node1/{CLIENT}"]


def test_any_who_has_the_queue_may_accept() -> None:
    edges = to_server(taken(LISTENS))
    assert [e.target for e in edges] == [f"node1/{MASTER}", f"node1/{WORKER}"]
    assert len({e.among for e in edges} - {""}) == 1, "alternatives"
    assert all("nobody has accepted it" in e.evidence for e in edges)
    assert not any(f.certainty is not Certainty.POSSIBLE for f in diagnose(taken(LISTENS)).findings)


@pytest.mark.parametrize(
    ("worker", "accepted", "targets"),
    [(None, False, [MASTER]), (LISTENS, True, [WORKER]), (replace(LISTENS, inode=8, rx_queue_bytes=0), False, [MASTER])],
    ids=["one listens", "the worker has accepted", "a queue of its own, which is empty"],
)
def test_where_one_has_it_that_one_is_meant(worker: Socket | None, accepted: bool, targets: list[int]) -> None:
    edges = to_server(taken(worker, accepted=accepted))
    assert [e.target for e in edges] == [f"node1/{pid}" for pid in targets]
    assert not any(e.among for e in edges)


def test_a_worker_that_was_forked_with_the_socket_and_waits_for_tasks_accepts_nothing() -> None:
    edges = to_server(taken(LISTENS, does=RESTS))
    assert [e.target for e in edges] == [f"node1/{MASTER}"]


def test_who_has_accepted_others_is_meant_and_not_who_only_has_a_copy() -> None:
    """A server that stands with a request in hand is not excused by a busy child that it has forked."""
    shot = taken(LISTENS)
    others = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:80", remote="127.0.0.1:6000", fd=8)
    node = shot.nodes[0]
    ones = tuple(replace(p, sockets=(LISTENS, others)) if p.pid == MASTER else p for p in node.processes)
    edges = to_server(replace(shot, nodes=(replace(node, processes=ones),)))
    assert [e.target for e in edges] == [f"node1/{MASTER}"]
