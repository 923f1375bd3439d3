"""Servers of coroutines that keep a request back until another one comes, and coroutines on the way to an answer, as their source tells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import Waits, find_waits
from ray_rl_debug.collect.async_tasks.apart import mark_apart
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, Process, Socket

CLIENT, BROKER = 100, 200
LOOP = "select@selectors.py:468 _run_once@asyncio/base_events.py:1884 run@asyncio/runners.py:118 main@app/{}.py:40"
EPOLL = 232
NAP = Awaited(kind="sleep", delay_s=20.0, due_s=9.0)
EMPTY = Awaited(kind="queue", detail="Queue.get empty", address=5, value=0)
READS = Awaited(kind="socket", detail="socket read", fd=6)
ASKS = Socket(fd=6, family="tcp", state="ESTABLISHED", local="127.0.0.1:5000", remote="127.0.0.1:8000")
SERVES = Socket(fd=7, family="tcp", state="ESTABLISHED", local="127.0.0.1:8000", remote="127.0.0.1:5000")
LISTENS = Socket(fd=3, family="tcp", state="LISTEN", local="127.0.0.1:8000")


def task(number: int, awaited: Awaited, **told: object) -> AsyncTask:
    chain = (AwaitFrame(function="answer", file="/srv/app/broker.py", line=number, **told),)  # type: ignore[arg-type]
    return AsyncTask(name=f"Task-{number}", chain=chain, address=number, stable=True, awaited=awaited, tid=BROKER, loop=9, timers=0)


def loop(stacks: Stacks, pid: int, name: str, *tasks: AsyncTask, sockets: tuple[Socket, ...]) -> Process:
    one = process(stacks, pid, name, LOOP.format(name), kind="named", wchan="do_epoll_wait", syscall=EPOLL, async_tasks=tasks)
    return replace(one, sockets=sockets)


def waits(held: AsyncTask, *of_client: AsyncTask) -> Waits:
    stacks = Stacks()
    client = loop(stacks, CLIENT, "client", task(1, READS), *of_client, sockets=(ASKS,))
    broker = loop(stacks, BROKER, "broker", held, sockets=(LISTENS, SERVES))
    return find_waits(build_view(snapshot(stacks.node([client, broker]))))


@pytest.mark.parametrize(
    ("held", "is_ring"),
    [
        (task(2, EMPTY, brings=True), True),
        (task(2, EMPTY, brings=False), False),
        (task(2, EMPTY), False),
        (task(2, replace(NAP, delay_s=0.2, due_s=0.1), looks=(), brings=True, goes_round=False), True),
        (task(2, replace(NAP, delay_s=0.2, due_s=0.1), looks=(), brings=False, goes_round=False), False),
        (task(2, replace(NAP, delay_s=0.2, due_s=0.1), looks=("exists",), goes_round=False), False),
    ],
    ids=[
        "a queue that requests fill",
        "a queue that others fill",
        "source unread",
        "looks at what requests change",
        "looks at what others change",
        "looks for a file",
    ],
)
def test_a_server_that_keeps_its_only_clients_request_back_waits_for_that_client(held: AsyncTask, is_ring: bool) -> None:
    found = waits(held)
    assert [e.target for e in found.graph.out(f"node1/{BROKER}")] == ([f"node1/{CLIENT}"] if is_ring else [])
    assert any(r.is_cycle for r in found.graph.roots) is is_ring


def test_a_client_that_pauses_besides_may_send_what_is_waited_for() -> None:
    activity = waits(task(2, EMPTY, brings=True), task(3, NAP, goes_round=False)).graph.solution.activities[f"node1/{BROKER}"]
    assert activity.outlook is Outlook.WAKES and "may send what its requests wait for" in activity.reason


@pytest.mark.parametrize(("goes_round", "outlook"), [(False, Outlook.WAKES), (True, Outlook.STANDS), (None, Outlook.STANDS)])
def test_who_pauses_in_a_loop_that_nothing_ends_is_on_the_way_to_no_answer(goes_round: bool | None, outlook: Outlook) -> None:
    found = waits(task(2, NAP, goes_round=goes_round, takes=False))
    assert found.graph.solution.activities[f"node1/{BROKER}"].outlook is outlook


def test_the_innermost_line_of_own_code_is_read(tmp_path: Path) -> None:
    source = tmp_path / "broker.py"
    source.write_text("async def take(scores):\n    while scores.few < 3:\n        await sleep(1)\n\n\nasync def main():\n    await take(scores)\n")
    os.utime(source, (0, 0))  # no source is read that is younger than its process
    chain = tuple(AwaitFrame(function=name, file=str(source), line=line) for name, line in (("main", 7), ("take", 3)))
    sleeper = replace(task(1, NAP), chain=chain)
    one = replace(process(Stacks(), os.getpid(), "broker", "main@app/broker.py:1"), async_tasks=(sleeper,))
    (told,) = mark_apart([one])[0].async_tasks or ()
    assert (told.chain[0], told.chain[1].goes_round, told.chain[1].takes) == (chain[0], False, None)


@pytest.mark.parametrize(("goes_round", "state"), [(True, State.UNKNOWN), (False, State.HEALTHY), (None, State.HEALTHY)])
def test_who_awaits_the_end_of_a_coroutine_that_goes_round_for_ever_is_not_called_healthy(goes_round: bool | None, state: State) -> None:
    beats = task(2, replace(NAP, delay_s=1.0, due_s=0.5), goes_round=goes_round)
    awaits = task(1, Awaited(kind="gather", detail="TaskGroup of 1", address=8, tasks=(2,)))
    stacks = Stacks()
    verdict = diagnose(snapshot(stacks.node([loop(stacks, CLIENT, "client", awaits, beats, sockets=())]))).verdict
    assert verdict.state is state
    assert ("answer (broker.py:2)" in verdict.summary) is (state is State.UNKNOWN)


def test_a_process_without_a_connection_that_stands_elsewhere_may_be_the_one_that_brings_nothing() -> None:
    stacks = Stacks()
    client = loop(stacks, CLIENT, "client", task(1, READS), sockets=(ASKS,))
    broker = loop(stacks, BROKER, "broker", task(2, EMPTY, brings=True), sockets=(LISTENS, SERVES))
    trainer = process(stacks, 300, "trainer", "load@app/train.py:9 main@app/train.py:20", kind="named", wchan="fifo_open", syscall=257)
    report = diagnose(snapshot(stacks.node([client, broker, trainer])))
    assert all(f.certainty is Certainty.POSSIBLE or {w.pid for w in f.who} == {300} for f in report.findings)
