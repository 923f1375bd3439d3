"""Stores that keep what others bring: a manager of multiprocessing, a store of torch. Whoever waits there waits for those who could bring it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.view import View, build_view
from ray_rl_debug.analyze.waits_stores import store_edges
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Process, Socket

PARENT, MANAGER, TAKER, PUTTER = 100, 200, 201, 202
SERVE = "wait@threading.py:629 serve_forever@multiprocessing/managers.py:175 start@multiprocessing/managers.py:560"
HELD = "wait@threading.py:327 get@queue.py:171 serve_client@multiprocessing/managers.py:253 run@threading.py:982"
LOCKS = "serve_client@multiprocessing/managers.py:273 run@threading.py:982"
TRACKS = "main@multiprocessing/resource_tracker.py:236 <module>@<string>:1"
BETWEEN = "recv@multiprocessing/connection.py:250 serve_client@multiprocessing/managers.py:230 run@threading.py:982"
GETS = "recv@multiprocessing/connection.py:250 _callmethod@multiprocessing/managers.py:818 take@app/train.py:9"
WORKS = "score@app/train.py:20"
POPEN = "Popen._try_wait@subprocess.py:2004 Popen.wait@subprocess.py:1264 main@app/train.py:9"
RESTS = "Connection.recv@multiprocessing/connection.py:250 worker@multiprocessing/pool.py:114 BaseProcess.run@multiprocessing/process.py:108"


def manager(stacks: Stacks, *clients: str) -> Process:
    """One thread for each client."""
    threads = [(f"Thread-{i}", text) for i, text in enumerate(clients)]
    return process(stacks, MANAGER, "python train.py", SERVE, kind="child", ppid=PARENT, extra_threads=threads)


def client(stacks: Stacks, pid: int, text: str, *, state: str = "S") -> Process:
    one = process(stacks, pid, "python train.py", text, kind="child", ppid=PARENT, state=state)
    return replace(one, samples=()) if state == "Z" else one


def kept(stacks: Stacks, *processes: Process) -> list[str]:
    """For whom the manager waits, by pid, where the taker waits for the manager."""
    known = [Edge(source=f"node1/{TAKER}", target=f"node1/{MANAGER}", why=Why.SOCKET, evidence="")]
    view = build_view(snapshot(stacks.node([process(stacks, PARENT, "python train.py", WORKS, kind="named", ppid=1), *processes])))
    edges = list(store_edges(view, known))
    assert all((e.source, e.why) == (f"node1/{MANAGER}", Why.CHILD_QUEUE) for e in edges)
    return [e.target.rpartition("/")[2] for e in edges]


def test_a_manager_that_holds_a_client_waits_for_the_others() -> None:
    stacks = Stacks()
    assert kept(stacks, manager(stacks, HELD, BETWEEN), client(stacks, TAKER, GETS), client(stacks, PUTTER, WORKS)) == ["202"]


def test_a_manager_whose_client_takes_a_lock_waits_for_the_others() -> None:
    """A lock is taken in C: no frame stands above that of the client's thread. multiprocessing's tracker is no client."""
    stacks = Stacks()
    family = [manager(stacks, LOCKS, BETWEEN), client(stacks, TAKER, GETS), client(stacks, 203, WORKS, state="Z")]
    assert kept(stacks, *family, client(stacks, PUTTER, WORKS)) == ["202"]
    assert kept(stacks, *family, client(stacks, PUTTER, TRACKS)) == ["203"]


def test_a_manager_between_two_requests_waits_for_nobody() -> None:
    """Then its silence is its own."""
    stacks = Stacks()
    assert kept(stacks, manager(stacks, BETWEEN, BETWEEN), client(stacks, TAKER, GETS), client(stacks, PUTTER, WORKS)) == []


def test_who_has_something_to_do_may_put_something_before_who_rests_or_has_ended() -> None:
    stacks = Stacks()
    family = [manager(stacks, HELD, BETWEEN), client(stacks, TAKER, GETS)]
    rests, dead = client(stacks, PUTTER, RESTS), client(stacks, 203, WORKS, state="Z")
    assert kept(stacks, *family, rests, dead, client(stacks, 204, WORKS)) == ["204"]
    assert kept(stacks, *family, rests, dead) == ["202"]
    assert kept(stacks, *family, dead) == ["203"]


GETS_ANSWER = "recv@multiprocessing/connection.py:250 main@app/train.py:9"
ASKS_STORE = "recv_pyobj@zmq/sugar/socket.py:900 take@app/train.py:9"


def connection(local: int, remote: int, *, state: str = "ESTABLISHED", fd: int = 7) -> Socket:
    far = None if state == "LISTEN" else f"127.0.0.1:{remote}"
    return Socket(family="tcp", state=state, local=f"127.0.0.1:{local}", remote=far, fd=fd)


def at_store(waiting: tuple[int, ...], *, idle: tuple[int, ...] = (), host_listens: bool = True, children: tuple[int, ...] = ()) -> View:
    """Three processes at one store on port 29500, which the first one hosts in a thread in C; it waits for the end of its `children`."""
    stacks = Stacks()
    found = []
    for i, pid in enumerate((PARENT, TAKER, PUTTER)):
        text = ASKS_STORE if pid in waiting else RESTS if pid in idle else POPEN if pid == PARENT and children else WORKS
        sockets = [connection(40000 + i, 29500)]
        if pid == PARENT:
            sockets += [connection(29500, 0, state="LISTEN", fd=8)] if host_listens else []
            sockets += [connection(29500, 40000 + n, fd=9 + n) for n in range(3)]
        found.append(process(stacks, pid, "python train.py", text, kind="named", sockets=sockets, ppid=PARENT if pid in children else 10))
    found += [process(stacks, pid, "python train.py", WORKS, kind="child", ppid=PARENT) for pid in children if pid not in (TAKER, PUTTER)]
    return build_view(snapshot(stacks.node(found)))


def met(view: View) -> list[tuple[str, str]]:
    edges = list(store_edges(view, []))
    assert all(e.why is Why.MESSAGE for e in edges)
    return [(e.source.rpartition("/")[2], e.target.rpartition("/")[2]) for e in edges]


def test_who_waits_at_a_store_waits_for_its_clients_that_do_not() -> None:
    assert met(at_store((TAKER,))) == [("201", "100"), ("201", "202")]
    assert met(at_store((TAKER, PUTTER))) == [("201", "100"), ("202", "100")]


def test_clients_that_rest_bring_nothing() -> None:
    assert met(at_store((TAKER,), idle=(PUTTER,))) == [("201", "100")]


def test_a_store_whose_host_was_not_seen_leads_to_nobody() -> None:
    assert met(at_store((TAKER,), host_listens=False)) == []


@pytest.mark.parametrize(
    ("started", "found"),
    [
        ((TAKER, PUTTER), [("201", "202"), ("202", "201")]),
        ((TAKER, PUTTER, 203), [("201", "100"), ("202", "100")]),
        ((TAKER,), [("201", "202"), ("202", "201")]),
    ],
    ids=["all of them are at the store", "one of them is elsewhere", "the other is not its child"],
)
def test_a_host_that_waits_for_the_end_of_those_at_its_store_brings_nothing(started: tuple[int, ...], found: list[tuple[str, str]]) -> None:
    assert met(at_store((TAKER, PUTTER), children=started)) == found


@pytest.mark.parametrize(
    ("code", "host_waits", "found"),
    [(-9, True, ["100", "203"]), (0, True, ["100"]), (-9, False, ["100"]), (None, True, ["100", "203"])],
    ids=["killed", "ended well", "the host works", "how it ended was not read"],
)
def test_where_all_at_a_store_wait_for_each_other_one_that_failed_may_have_had_to_bring_it(
    code: int | None, host_waits: bool, found: list[str]
) -> None:
    """Its connection is gone with it; who started the others started it too."""
    stacks = Stacks()
    serves = (connection(40000, 29500), connection(29500, 0, state="LISTEN", fd=8), connection(29500, 40000, fd=9))
    host = process(stacks, PARENT, "python train.py", GETS_ANSWER, kind="named", sockets=serves)
    asks = process(stacks, TAKER, "python train.py", ASKS_STORE, kind="child", ppid=PARENT, sockets=[connection(40001, 29500)])
    view = build_view(snapshot(stacks.node([host, asks, replace(client(stacks, 203, WORKS, state="Z"), exit_code=code)])))
    known = [Edge(source=f"node1/{PARENT}", target=f"node1/{TAKER}", why=Why.CHILD_QUEUE, evidence="")] if host_waits else []
    edges = [e for e in store_edges(view, known) if e.why is Why.MESSAGE]
    assert [e.target.rpartition("/")[2] for e in edges] == found
    assert [e.certainty for e in edges[1:]] == [Certainty.POSSIBLE if code is None else Certainty.LIKELY] * (len(found) - 1)
