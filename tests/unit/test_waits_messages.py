"""Programs that pass messages by ZeroMQ wait for whoever may send the next one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, Process, Snapshot, Socket, Thread

RECV = "Socket.recv_pyobj@zmq/sugar/socket.py:1033"
LOOP = "EpollSelector.select@selectors.py:468 BaseEventLoop._run_once@asyncio/base_events.py:1884"
SERVER = f"{LOOP} BaseEventLoop.run_forever@asyncio/base_events.py:607 run_app@aiohttp/web.py:502 frontend@app/serve.py:95 <module>@app/serve.py:112"
LOCK = 202


def end(fd: int, inode: int, peer: int | None) -> Socket:
    return Socket(family="unix", state="ESTABLISHED", local="", remote="", inode=inode, peer_inode=peer, fd=fd)


def passing(one: Process, *ends: Socket, read: bool = True) -> Process:
    """With a thread of the library that carries these connections; or it rests with others, and nobody asked it."""
    carries = Thread(tid=one.pid + 7, comm="ZMQbg/IO/0", state="S", wchan="ep_poll", waits_on_fds=(9, *(e.fd or 0 for e in ends)))
    threads = (*one.threads, carries) if read else one.threads
    return replace(one, threads=threads, idle_threads={} if read else {"ZMQbg/IO/0": 1}, sockets=(*(one.sockets or ()), *ends))


def awaits(number: int, function: str) -> AsyncTask:
    chain = (AwaitFrame(function=function, file="app/serve.py", line=number),)
    return AsyncTask(
        address=number, name=f"Task-{number}", chain=chain, awaited=Awaited(kind="future", detail="Future", address=90 + number), stable=True, tid=103
    )


def seen(last: str, *, syscall: int, read: bool = True, wakes_in_s: float | None = None, asks: bool = True) -> Snapshot:
    """A client, a frontend of coroutines, an engine and a detokenizer that stands at `last`; the messages go round."""
    stacks = Stacks()
    tcp = {"family": "tcp", "state": "ESTABLISHED", "bytes_received": 200, "quiet_s": 30.0}
    connection = Socket(local="127.0.0.1:4000", remote="127.0.0.1:5000", fd=3, **tcp)
    listens = Socket(family="tcp", state="LISTEN", local="127.0.0.1:5000", fd=15)
    serves = Socket(local="127.0.0.1:5000", remote="127.0.0.1:4000", fd=17, **tcp)
    client = process(stacks, 101, "python run.py", "readinto@socket.py:706 main@app/run.py:3", kind="named", syscall=45, arg0=3, sockets=[connection])
    if not asks:
        client = process(stacks, 101, "python run.py", "update@app/run.py:9 main@app/run.py:4", kind="named", syscall=230, wchan="hrtimer_nanosleep")
    engine = process(
        stacks, 102, "python engine.py", f"{RECV} engine@app/engine.py:5", kind="child", ppid=101, syscall=7, wchan="poll_schedule_timeout"
    )
    tasks = (awaits(77, "take_texts"), awaits(85, "generate"))[: 2 if asks else 1]
    front = process(
        stacks, 103, "python serve.py", SERVER, kind="child", ppid=101, syscall=232, wchan="ep_poll", sockets=[listens, serves], async_tasks=tasks
    )
    words = process(
        stacks,
        104,
        "python words.py",
        last,
        kind="child",
        ppid=101,
        syscall=syscall,
        wchan="futex_do_wait" if syscall == LOCK else "hrtimer_nanosleep",
    )
    if wakes_in_s is not None:
        words = replace(words, threads=tuple(replace(t, wakes_in_s=wakes_in_s) for t in words.threads))
    all_four = (
        client,
        passing(engine, end(12, 21, 31), end(11, 22, 42), read=read),
        passing(front, end(14, 31, 21), end(16, 32, 41), read=read),
        passing(words, end(12, 41, 32), end(11, 42, 22), read=read),
    )
    return snapshot(stacks.node(all_four))


def test_who_stands_in_the_round_is_named() -> None:
    report = diagnose(seen("detokenize@app/words.py:60", syscall=LOCK))
    assert (report.verdict.state, [w.pid for w in report.findings[0].who]) == (State.HANG, [104])


def test_who_pauses_in_the_round_may_go_on() -> None:
    report = diagnose(seen("detokenize@app/words.py:60", syscall=230, wakes_in_s=20.0))
    assert report.verdict.state is State.SLOW
    assert all(w.pid == 104 for f in report.findings for w in f.who)


@pytest.mark.parametrize("last", [f"{RECV} detokenize@app/words.py:55", "detokenize@app/words.py:60"])
def test_without_the_other_ends_nobody_of_the_round_is_accused(last: str) -> None:
    report = diagnose(seen(last, syscall=7 if last.startswith("Socket") else LOCK, read=False))
    assert all(w.pid != 103 for f in report.findings for w in f.who)


def test_a_round_at_rest_is_nobodys_hang() -> None:
    """The trainer pauses, and everybody else waits for the next message."""
    report = diagnose(seen(f"{RECV} detokenize@app/words.py:55", syscall=7, asks=False))
    assert report.verdict.state is not State.HANG
    assert report.findings == ()


def test_a_round_that_lost_a_message_is_a_ring() -> None:
    report = diagnose(seen(f"{RECV} detokenize@app/words.py:55", syscall=7))
    assert (report.verdict.state, report.findings[0].cause) == (State.HANG, "lock-deadlock")
