"""Who has the last word on a connection: proxies that pass nothing on, brokers at which all clients wait."""

from __future__ import annotations

import msgspec
import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Report, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, Process, Socket
from tests.unit.scenes import Stacks, process, snapshot

RECV, EPOLL, POLL = 45, 232, 7
START = "run@threading.py:982 _bootstrap_inner@threading.py:1045 _bootstrap@threading.py:1002"
LOOP = "select@selectors.py:468 _run_once@asyncio/base_events.py:1884 run@asyncio/runners.py:118 <module>@/job/proxy.py:40"


def end(local: int, remote: int, fd: int, quiet_s: float) -> Socket:
    return Socket(family="tcp", state="ESTABLISHED", local=f"127.0.0.1:{local}", remote=f"127.0.0.1:{remote}", inode=local, fd=fd, quiet_s=quiet_s)


def port(number: int) -> Socket:
    return Socket(family="tcp", state="LISTEN", local=f"127.0.0.1:{number}", inode=number, fd=3)


def named(report: Report) -> list[int | None]:
    return [w.pid for w in report.findings[0].who] if report.findings else []


def reads(stacks: Stacks, pid: int, fd: int, *sockets: Socket) -> Process:
    """One that waits for data."""
    return process(stacks, pid, "python p.py", f"work@/job/{pid}.py:9", kind="child", wchan="wait_woken", syscall=RECV, arg0=fd, sockets=sockets)


@pytest.mark.parametrize(("asked_s", "answered_s", "is_told"), [(8.6, 8.5, True), (8.5, 8.6, False)])
def test_a_proxy_with_a_later_message_in_its_hands_waits_for_no_answer(asked_s: float, answered_s: float, is_told: bool) -> None:
    """The engine has answered and reads again; what came to the proxy since then went no further."""
    stacks = Stacks()
    tasks = tuple(
        AsyncTask(
            name=f"Task-{fd}", address=fd, stable=True, tid=30, loop=9, timers=0,
            chain=(AwaitFrame(function="pass_on", file="/job/proxy.py", line=18),), awaited=Awaited(kind="socket", detail="socket read", fd=fd),
        )
        for fd in (7, 8)
    )  # fmt: skip
    engine = reads(stacks, 20, 4, port(80), end(80, 1000, 4, asked_s))
    sockets = [port(90), end(90, 2000, 7, 8.3), end(1000, 80, 8, answered_s)]
    proxy = process(stacks, 30, "python proxy.py", LOOP, kind="child", wchan="do_epoll_wait", syscall=EPOLL, sockets=sockets, async_tasks=tasks)
    rollout = reads(stacks, 40, 3, end(2000, 90, 3, 8.48))
    report = diagnose(snapshot(stacks.node([engine, proxy, rollout])))
    assert (report.verdict.state is State.HANG) is is_told
    assert not is_told or (20 not in named(report) and {30, 40}.intersection(named(report)))


@pytest.mark.parametrize("takes", [True, False])
def test_a_proxy_that_pauses_with_a_line_in_its_hands_will_pass_it_on(takes: bool) -> None:
    stacks = Stacks()
    frame = AwaitFrame(function="pass_on", file="/job/proxy.py", line=20, apart=False, takes=takes)
    asleep = Awaited(kind="sleep", delay_s=1.8, due_s=0.5)
    task = AsyncTask(name="Task-5", address=5, stable=False, tid=30, loop=9, timers=1, chain=(frame,), awaited=asleep)
    sockets = [port(90), end(90, 2000, 7, 3.3)]
    proxy = process(stacks, 30, "python proxy.py", LOOP, kind="child", wchan="do_epoll_wait", syscall=EPOLL, sockets=sockets, async_tasks=(task,))
    report = diagnose(snapshot(stacks.node([proxy, reads(stacks, 40, 3, end(2000, 90, 3, 4.0))])))
    assert (report.verdict.state is State.HANG) is not takes


@pytest.mark.parametrize(("brings", "is_ring"), [(True, True), (False, False), (None, False)])
def test_a_broker_at_which_all_clients_wait_is_not_alone_to_blame(brings: bool | None, is_ring: bool) -> None:
    """Each of its threads keeps a request back until another request brings something: a server whose own thread should answer is alone to blame."""
    stacks = Stacks()
    outer = f"finish_request@socketserver.py:361 process_request_thread@socketserver.py:691 {START}"
    held = [(f"Thread-{n} (process_request_thread)", f"wait@threading.py:327 handle@/job/b.py:33 {outer}") for n in (1, 2)]
    serve = "select@selectors.py:415 serve_forever@socketserver.py:233 serve@/job/b.py:55"
    sockets = [port(80), end(80, 1000, 4, 9.0), end(80, 2000, 5, 8.5)]
    broker = process(stacks, 20, "python b.py", serve, kind="child", wchan="poll_schedule_timeout", syscall=POLL, sockets=sockets, extra_threads=held)
    broker = msgspec.structs.replace(broker, threads=(msgspec.structs.replace(broker.threads[0], waits_on_fds=(3,)), *broker.threads[1:]))
    clients = [reads(stacks, 15, 3, end(1000, 80, 3, 9.1)), reads(stacks, 30, 3, end(2000, 80, 3, 8.6))]
    node = stacks.node([broker, *clients])
    frames = tuple(msgspec.structs.replace(f, brings=brings) if f.function == "handle" else f for f in node.frames)
    report = diagnose(snapshot(msgspec.structs.replace(node, frames=frames)))
    assert report.verdict.state is State.HANG
    assert ({15, 30} <= set(named(report))) is is_ring


@pytest.mark.parametrize(("wchan", "call", "is_hang"), [("hrtimer_nanosleep", 230, False), ("wait_for_partner", 257, True)])
def test_a_server_without_a_request_waits_for_its_client(wchan: str, call: int, is_hang: bool) -> None:
    """Its launcher waits for its end, and that is up to whoever sends it requests."""
    stacks = Stacks()
    main = process(stacks, 10, "python m.py", "main@/job/m.py:76", kind="named", ppid=1, wchan="do_wait", syscall=61, arg0=20)
    engine = reads(stacks, 20, 4, port(80), end(80, 1000, 4, 3.6))
    client = process(stacks, 30, "python c.py", "play@/job/c.py:9", kind="child", wchan=wchan, syscall=call, sockets=[end(1000, 80, 3, 3.5)])
    report = diagnose(snapshot(stacks.node([main, engine, client])))
    assert (report.verdict.state is State.HANG) is is_hang
    assert named(report)[:1] == [30]


@pytest.mark.parametrize(("asked_s", "got_s", "cause"), [(9.2, 8.6, Cause.ASYNCIO_STUCK), (8.6, 9.2, Cause.BLOCKED_IO)])
def test_an_answer_that_a_thread_has_read_and_the_loop_never_got(asked_s: float, got_s: float, cause: Cause) -> None:
    stacks = Stacks()
    frame = AwaitFrame(function="Client.ask", file="/job/proxy.py", line=57)
    task = AsyncTask(name="Task-1", address=5, stable=True, tid=10, loop=9, timers=0, chain=(frame,), awaited=Awaited(kind="future", detail="Future"))
    main = process(
        stacks, 10, "python m.py", LOOP, kind="named", ppid=1, wchan="do_epoll_wait", syscall=EPOLL,
        sockets=[end(1000, 80, 6, got_s)], async_tasks=(task,), extra_threads=[("Thread-1 (read)", f"read@/job/m.py:44 {START}")],
    )  # fmt: skip
    reader = msgspec.structs.replace(main.threads[1], wchan="wait_woken", syscall=RECV, syscall_arg0=6)
    main = msgspec.structs.replace(main, threads=(main.threads[0], reader))
    engine = reads(stacks, 20, 4, port(80), end(80, 1000, 4, asked_s))
    report = diagnose(snapshot(stacks.node([main, engine])))
    assert report.verdict.state is State.HANG and named(report)[:1] == [10] and report.findings[0].cause is cause
