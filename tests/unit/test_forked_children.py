"""Children that multiprocessing has forked: they carry their parent's stack and the memory of its coroutines, and do neither."""

from __future__ import annotations

import pytest
from scenes import MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, Snapshot

FORK = (
    "BaseProcess._bootstrap@multiprocessing/process.py:314 Popen._launch@multiprocessing/popen_fork.py:71"
    f" BaseProcess.start@multiprocessing/process.py:121 AsyncLLM.setup@app/llm.py:9 {MAIN}"
)
CORE = f"Queue.get@queue.py:171 run_busy_loop@app/core.py:20 BaseProcess.run@multiprocessing/process.py:108 {FORK}"
INPUT = "Connection._recv@multiprocessing/connection.py:395 read_requests@app/core.py:8 Thread.run@threading.py:982"
OUTPUT = "Connection._recv@multiprocessing/connection.py:395 AsyncLLM.read_answers@app/llm.py:14 Thread.run@threading.py:982"
LOOP = "run_forever@asyncio/base_events.py:600 Thread.run@threading.py:982"
DRIVER, LLM, CHILD = 1, 100, 200


def task(kind: str, function: str, tid: int) -> AsyncTask:
    chain = (
        AwaitFrame(function="run_async_func_or_coro_in_event_loop.<locals>.async_func"),
        AwaitFrame(function=function, file="app/llm.py", line=7),
    )
    return AsyncTask(address=5, name="Task-3", chain=chain, awaited=Awaited(kind=kind, address=9), stable=True, tid=tid)


def engine(*, calls: bool, child: str = CORE) -> Snapshot:
    """An async actor whose engine core is a forked child: one thread of the core reads requests, its main thread waits at their queue."""
    stacks = Stacks()
    waiting = (task("future", "AsyncLLM.generate", LLM + 1000),) if calls else ()
    threads = [("AsyncIO Thread: default", LOOP), ("read_answers", OUTPUT)]
    llm = process(stacks, LLM, "ray::AsyncLLM.generate" if calls else "ray::AsyncLLM", MAIN, extra_threads=threads, async_tasks=waiting)
    inherited = (task("running", "AsyncLLM.setup", CHILD),)
    part = process(stacks, CHILD, "ray::AsyncLLM.setup", child, kind="child", ppid=LLM, extra_threads=[("input", INPUT)], async_tasks=inherited)
    driver = process(stacks, DRIVER, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(1)] if calls else [])
    ray = ray_state(actors=[actor(0, "AsyncLLM", LLM)], cores=[core(LLM, running=[1] if calls else [], actor_number=0)])
    return snapshot(stacks.node([llm, part, *([driver] if calls else [])]), ray)


def test_an_idle_engine_is_no_hang() -> None:
    report = diagnose(engine(calls=False))
    assert report.verdict.state is not State.HANG
    assert report.findings == ()


def test_a_request_that_the_engine_lost_is_seen_where_it_is_awaited() -> None:
    report = diagnose(engine(calls=True))
    root = report.findings[0]
    assert report.verdict.state is State.HANG
    assert root.cause in (Cause.LOCK_DEADLOCK, Cause.ASYNCIO_STUCK)
    assert [w.pid for w in root.who] == [LLM]


def test_what_the_parent_did_when_it_forked_is_not_what_the_child_does() -> None:
    one = build_view(engine(calls=True)).seen[f"node1/{CHILD}"]
    assert one.place is not None
    assert [f for f, _, _ in one.place.path] == ["run_busy_loop"]
    assert one.process.async_tasks == ()


@pytest.mark.parametrize("inner", ["run@asyncio/runners.py:44", "run@uvloop/__init__.py:70"])
def test_coroutines_of_a_loop_that_the_child_runs_itself_stay(inner: str) -> None:
    child = f"serve@app/core.py:30 {inner} serve_all@app/core.py:40 {FORK}"
    assert build_view(engine(calls=False, child=child)).seen[f"node1/{CHILD}"].process.async_tasks


def test_what_a_parent_did_is_no_place_of_its_child() -> None:
    child = f"_shutdown@threading.py:1590 {FORK}"
    one = build_view(engine(calls=False, child=child)).seen[f"node1/{CHILD}"]
    assert one.place is not None
    assert one.place.path == ()


JOINS = "Popen.poll@multiprocessing/popen_fork.py:27 BaseProcess.join@multiprocessing/process.py:149 serve@app/tools.py:37"
CLOSES = f"_close_stdin@multiprocessing/util.py:415 {FORK}"
FUTEX, WAIT = 202, 61


@pytest.mark.parametrize("threads", [1, 2])
def test_a_forked_child_alone_at_the_lock_of_its_copied_input_waits_for_nobody_who_lives(threads: int) -> None:
    stacks = Stacks()
    server = process(stacks, LLM, "tools", JOINS, kind="named", wchan="do_wait", syscall=WAIT, arg0=CHILD)
    beside = [("reader", INPUT)] * (threads - 1)
    child = process(stacks, CHILD, "tools", CLOSES, kind="child", ppid=LLM, wchan="futex_do_wait", syscall=FUTEX, extra_threads=beside)
    report = diagnose(snapshot(stacks.node([server, child])))
    locks = [f for f in report.findings if f.cause is Cause.LOCK_DEADLOCK and "a lock inherited over a fork has no owner" in f.summary]
    assert [{w.pid for w in f.who} for f in locks] == ([{LLM, CHILD}] if threads == 1 else [])
