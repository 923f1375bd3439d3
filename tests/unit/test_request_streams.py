"""A stream of requests has its answer once it ends: its sender waits for the own thread that makes the requests, not for the server."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import Socket

CLIENT, SERVER = 100, 200
STARTED = "Thread.run@threading.py:982 Thread._bootstrap_inner@threading.py:1045 Thread._bootstrap@threading.py:1002"
MAKES = f"_consume_request_iterator.<locals>.consume_request_iterator@grpc/_channel.py:230 {STARTED}"
AT_QUEUE = f"Condition.wait@threading.py:327 Queue.get@queue.py:171 {MAKES}"
FOR_ROOM = f"Condition.wait@threading.py:331 _wait_once@grpc/_common.py:114 wait@grpc/_common.py:154 {MAKES}"
ASKS = "_blocking@grpc/_channel.py:1488 {kind}.__call__@grpc/_channel.py:1505 main@app/train.py:62"
READS = (
    "Condition.wait@threading.py:327 _RequestIterator._next@grpc/_server.py:540 collect@app/collect.py:27 _unary_response_in_pool@grpc/_server.py:9"
)
SERVES = "Condition.wait@threading.py:331 Event.wait@threading.py:629 _Server.wait_for_termination@grpc/_server.py:1485 serve@app/collect.py:37"


def told(maker: str = AT_QUEUE, *, kind: str = "_StreamUnaryMultiCallable", player: str = "") -> Report:
    stacks = Stacks()
    threads = [("Thread-3", maker), *([("player", f"play@app/train.py:50 {STARTED}")] if player else [])]
    ends = [Socket(family="tcp", state="ESTABLISHED", local=f"127.0.0.1:{a}", remote=f"127.0.0.1:{b}", fd=9) for a, b in ((5000, 80), (80, 5000))]
    listens = Socket(family="tcp", state="LISTEN", local="127.0.0.1:80", remote=None, fd=8)
    asks = ASKS.format(kind=kind).replace("_blocking@", f"{kind}._blocking@")
    client = process(
        stacks, CLIENT, "python train.py", asks, kind="named", wchan="do_epoll_wait", syscall=232, sockets=[ends[0]], extra_threads=threads
    )
    if player:
        asleep = replace(client.threads[-1], wchan="hrtimer_nanosleep", call="clock_nanosleep", wakes_in_s=20.0)
        client = replace(client, threads=(*client.threads[:-1], asleep))
    server = process(
        stacks, SERVER, "python collect.py", SERVES, kind="child", ppid=CLIENT, sockets=[listens, ends[1]], extra_threads=[("pool_0", READS)]
    )
    return diagnose(snapshot(stacks.node([client, server])))


def test_the_sender_is_named_and_the_thread_that_does_not_end_the_stream() -> None:
    report = told()
    first = report.findings[0]
    assert report.verdict.state is State.HANG
    assert [w.pid for w in first.who] == [CLIENT]
    assert "its thread Thread-3 has not sent the stream's end, and waits at a queue" in first.summary


@pytest.mark.parametrize(
    "scene",
    [{"maker": FOR_ROOM}, {"kind": "_StreamStreamMultiCallable"}, {"player": "sleeps"}],
    ids=["the server takes no more", "answers may come before its end", "another thread may bring the rest"],
)
def test_it_is_not_accused_where_it_may_go_on_or_the_server_owes(scene: dict[str, str]) -> None:
    report = told(**scene)
    assert not any("stream's end" in f.summary and f.certainty is not Certainty.POSSIBLE for f in report.findings)
    if "player" in scene:
        assert report.verdict.state in (State.SLOW, State.HEALTHY)
