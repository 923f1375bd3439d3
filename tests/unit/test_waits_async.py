"""Coroutines that wait with a time limit, and those that read what a program has left open."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, OpenFile, Process, Socket

MAIN, SHELL, SERVER = 100, 4000, 4001
LOOP = "select@selectors.py:468 _run_once@asyncio/base_events.py:1884 run@asyncio/runners.py:118 main@app/agent.py:40"
ACCEPTS = "accept@socket.py:294 serve@app/server.py:3"
EPOLL = 232
OUTPUT = OpenFile(fd=7, path="pipe:[77]", kind="pipe", inode=77, writable=False)


def task(number: int, function: str, line: int, awaited: Awaited) -> AsyncTask:
    chain = (AwaitFrame(function=function, file="app/agent.py", line=line),)
    return AsyncTask(name=f"Task-{number}", chain=chain, address=number, stable=True, awaited=awaited, tid=MAIN, loop=9, timers=0)


def loop(stacks: Stacks, *tasks: AsyncTask) -> Process:
    one = process(stacks, MAIN, "python agent.py", LOOP, kind="named", wchan="do_epoll_wait", syscall=EPOLL, async_tasks=tasks)
    return replace(one, files=(OUTPUT,))


@pytest.mark.parametrize(
    ("limit", "outlook", "certainty"),
    [("wait_for 4 s", Outlook.WAKES, Certainty.POSSIBLE), ("wait_for 3600 s", Outlook.STANDS, None), ("wait_for", Outlook.STANDS, None)],
    ids=["seconds", "an hour", "no limit"],
)
def test_who_gives_up_in_time_wakes_by_itself(limit: str, outlook: Outlook, certainty: Certainty | None) -> None:
    stacks = Stacks()
    waits = task(1, "run_tool", 25, Awaited(kind="task", detail=limit, address=2, tasks=(2,)))
    ends = task(2, "end_of_tool", 30, Awaited(kind="subprocess", detail="process", pid=SHELL))
    shell = replace(process(stacks, SHELL, "sh", "x@y.py:1", kind="child", ppid=MAIN, wchan="do_wait", syscall=61), samples=())
    taken = snapshot(stacks.node([loop(stacks, waits, ends), shell]))
    assert find_waits(build_view(taken)).graph.solution.activities[f"node1/{MAIN}"].outlook is outlook
    if certainty is not None:
        assert all(f.certainty is certainty for f in diagnose(taken).findings)


@pytest.mark.parametrize(
    ("left_s", "others_s", "outlook"),
    [(4.0, 9.0, Outlook.WAKES), (3600.0, 9.0, Outlook.STANDS), (4.0, None, Outlook.STANDS), (-30.0, 9.0, Outlook.STANDS)],
    ids=["seconds", "an hour", "another has none", "long over"],
)
def test_a_coroutine_within_a_limit_of_its_own_wakes_by_itself(left_s: float, others_s: float | None, outlook: Outlook) -> None:
    stacks = Stacks()
    asks = replace(task(1, "make", 25, Awaited(kind="socket", detail="socket read", fd=9)), gives_up_s=left_s)
    takes = replace(task(2, "train", 30, Awaited(kind="queue", detail="Queue.get empty", address=7)), gives_up_s=others_s)
    taken = snapshot(stacks.node([loop(stacks, asks, takes)]))
    assert find_waits(build_view(taken)).graph.solution.activities[f"node1/{MAIN}"].outlook is outlook
    assert outlook is Outlook.STANDS or all(f.certainty is Certainty.POSSIBLE for f in diagnose(taken).findings)


def test_who_serves_the_own_process_waits_for_the_one_that_gives_up() -> None:
    stacks = Stacks()
    asks = replace(task(1, "make", 25, Awaited(kind="socket", detail="socket read", fd=9)), gives_up_s=4.0)
    serves = task(2, "tool", 14, Awaited(kind="socket", detail="socket read", fd=11))
    own = loop(stacks, asks, serves)
    ends = [Socket(family="tcp", state="ESTABLISHED", local=f"127.0.0.1:{a}", remote=f"127.0.0.1:{b}", fd=fd) for a, b, fd in ((1, 2, 9), (2, 1, 11))]
    for sockets, outlook in ((ends, Outlook.WAKES), ([ends[0], replace(ends[1], remote="127.0.0.1:3")], Outlook.STANDS)):
        taken = snapshot(stacks.node([replace(own, sockets=tuple(sockets))]))
        assert find_waits(build_view(taken)).graph.solution.activities[f"node1/{MAIN}"].outlook is outlook


def test_a_task_ends_with_the_limit_of_the_one_that_awaits_it() -> None:
    stacks = Stacks()
    awaits = replace(task(1, "make", 25, Awaited(kind="task", address=2, tasks=(2,))), gives_up_s=5.0)
    asks = task(2, "ask", 30, Awaited(kind="socket", detail="socket read", fd=9))
    taken = snapshot(stacks.node([loop(stacks, awaits, asks)]))
    assert find_waits(build_view(taken)).graph.solution.activities[f"node1/{MAIN}"].outlook is Outlook.WAKES


def test_who_reads_the_output_of_a_program_that_has_ended_waits_for_whom_it_left_behind() -> None:
    stacks = Stacks()
    reads = task(1, "run_tool", 31, Awaited(kind="subprocess", detail="process"))
    server = replace(process(stacks, SERVER, "python -c", ACCEPTS, kind="child", ppid=1), files=(replace(OUTPUT, fd=1, writable=True),))
    found = find_waits(build_view(snapshot(stacks.node([loop(stacks, reads), server])))).graph.edges
    assert [(e.source, e.target, e.why.value) for e in found] == [(f"node1/{MAIN}", f"node1/{SERVER}", "pipe")]
    others = replace(server, files=(replace(OUTPUT, fd=1, inode=78, writable=True),))
    assert find_waits(build_view(snapshot(stacks.node([loop(stacks, reads), others])))).graph.edges == ()


@pytest.mark.parametrize("wait", ["Queue.get@queue.py:171", "Event.wait@threading.py:629", "Future.result@concurrent/futures/_base.py:451"])
@pytest.mark.parametrize("stable", [False, True])
def test_a_coroutine_that_went_on_may_bring_what_a_thread_waits_for(wait: str, stable: bool) -> None:
    """The loop runs in a thread of its own; at both looks it was found at rest."""
    stacks = Stacks()
    own = f"Condition.wait@threading.py:327 {wait} main@app/agent.py:75"
    turns = "select@selectors.py:468 _run_once@asyncio/base_events.py:1884 run_forever@asyncio/base_events.py:608 Thread.run@threading.py:982"
    one = process(stacks, MAIN, "python agent.py", own, kind="named", wchan="futex_do_wait", syscall=202, extra_threads=[("episodes", turns)])
    plays = replace(task(1, "play", 25, Awaited(kind="future", detail="Future")), stable=stable, tid=MAIN + 1000)
    taken = snapshot(stacks.node([replace(one, async_tasks=(plays,))]))
    outlook = find_waits(build_view(taken)).graph.solution.activities[f"node1/{MAIN}"].outlook
    assert (outlook is Outlook.WAKES) is not stable
    assert stable or not any(f.certainty is not Certainty.POSSIBLE for f in diagnose(taken).findings)


_MANAGER = "select@selectors.py:415 wait@multiprocessing/connection.py:948 run@concurrent/futures/process.py:345"
_TAKES = "recv_bytes@multiprocessing/connection.py:216 get@multiprocessing/queues.py:103 _process_worker@concurrent/futures/process.py:249"
_JOINS = "_wait_for_tstate_lock@threading.py:1139 join@threading.py:1119 shutdown@concurrent/futures/thread.py:235 verify@app/agent.py:7"
_AT_WORK = "_process_worker@concurrent/futures/process.py:261 main@app/agent.py:40"
_OF_THREADS = "score@app/agent.py:9 run@concurrent/futures/thread.py:58 _worker@concurrent/futures/thread.py:83"


@pytest.mark.parametrize("has_threads", [False, True], ids=["a pool of processes", "threads at work as well"])
def test_who_awaits_a_pool_waits_for_its_workers_that_have_work(has_threads: bool) -> None:
    stacks = Stacks()
    awaits = task(1, "reward", 25, Awaited(kind="executor", detail="thread future running", address=5))
    beside = [("Thread-1", _MANAGER), *([("Thread-2", _OF_THREADS)] if has_threads else [])]
    main = process(stacks, MAIN, "agent", LOOP, kind="named", syscall=EPOLL, async_tasks=(awaits,), extra_threads=beside)
    idle = process(stacks, SHELL, "python", _TAKES, kind="child", ppid=MAIN, wchan="anon_pipe_read", syscall=0)
    works = process(stacks, SERVER, "python", f"{_JOINS} {_AT_WORK}", kind="child", ppid=MAIN, wchan="futex_do_wait", syscall=202)
    waits = find_waits(build_view(snapshot(stacks.node([main, idle, works]))))
    assert {e.target for e in waits.graph.out(f"node1/{MAIN}")} == (set() if has_threads else {f"node1/{SERVER}"})


@pytest.mark.parametrize(
    ("child", "outlook", "hope"),
    [(_JOINS, Outlook.STANDS, Outlook.STANDS), ("sleep@app/agent.py:7", Outlook.STANDS, Outlook.WAKES)],
    ids=["a worker that stands", "a worker that pauses"],
)
def test_who_gave_up_and_asks_its_pool_again_has_no_more_hope_than_the_workers(child: str, outlook: Outlook, hope: Outlook) -> None:
    stacks = Stacks()
    again = replace(task(1, "reward", 25, Awaited(kind="executor", detail="thread future pending", address=5)), stable=False)
    beside = [("Thread-1", _MANAGER)]
    main = process(stacks, MAIN, "agent", LOOP, kind="named", syscall=EPOLL, async_tasks=(again,), extra_threads=beside)
    call = {"wchan": "futex_do_wait", "syscall": 202} if child == _JOINS else {"wchan": "hrtimer_nanosleep", "syscall": 230}
    works = process(stacks, SERVER, "python", f"{child} {_AT_WORK}", kind="child", ppid=MAIN, **call)  # type: ignore[arg-type]
    graph = find_waits(build_view(snapshot(stacks.node([main, works])))).graph
    assert (graph.solution.activities[f"node1/{MAIN}"].outlook, graph.hope(f"node1/{MAIN}")) == (outlook, hope)
