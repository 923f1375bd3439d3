"""Who waits for whom among the coroutines of one process, and what the rules say of it."""

from __future__ import annotations

import msgspec
import pytest

from ray_rl_debug.analyze.coroutines import find_ends, rank, serves
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, Process, Socket
from tests.unit.scenes import Stacks, process, snapshot

LOOP = "select@selectors.py:468 _run_once@asyncio/base_events.py:1884 run_forever@asyncio/base_events.py:607 run@asyncio/runners.py:118"
IN_LOCK = AwaitFrame(function="Lock.acquire", file="asyncio/locks.py", line=113)
NO_PERMIT = Awaited(kind="semaphore", detail="Semaphore value=0", address=900, value=0)


def task(number: int, awaited: Awaited | None, *functions: str, stable: bool | None = True, inner: AwaitFrame | None = None) -> AsyncTask:
    chain = tuple(AwaitFrame(function=f, file="/job/agent.py", line=10 * (i + 1)) for i, f in enumerate(functions))
    return AsyncTask(
        address=number, name=f"Task-{number}", chain=(*chain, *((inner,) if inner else ())), awaited=awaited, loop=1, tid=200, stable=stable
    )


def lock(*holders: int, address: int = 700) -> Awaited:
    return Awaited(kind="lock", detail="Lock locked", address=address, holders=holders)


def of(*tasks: AsyncTask, sockets: tuple[Socket, ...] = (), stack: str = LOOP, kind: str = "named", **more: object) -> Process:
    return process(Stacks(), 200, "python agent.py", stack, kind=kind, async_tasks=tasks, sockets=sockets, **more)  # type: ignore[arg-type]


def report(*tasks: AsyncTask, sockets: tuple[Socket, ...] = (), stack: str = LOOP, kind: str = "named", **more: object) -> Report:
    stacks = Stacks()
    one = process(stacks, 200, "python agent.py", stack, kind=kind, async_tasks=tasks, sockets=sockets, **more)  # type: ignore[arg-type]
    return diagnose(snapshot(stacks.node([one])))


def test_a_semaphore_that_nobody_can_release() -> None:
    main = task(1, Awaited(kind="gather", detail="gather of 2", tasks=(2, 3)), "main")
    first, *others = find_ends(of(main, task(2, NO_PERMIT, "episode", inner=IN_LOCK), task(3, NO_PERMIT, "episode", inner=IN_LOCK)))
    assert (len(first.tasks), first.behind, first.is_lost, first.at) == (2, 1, True, "episode (agent.py:10)")
    assert others == []


def test_a_sleeper_of_own_code_might_hold_the_permit() -> None:
    (end,) = find_ends(of(task(1, Awaited(kind="sleep", delay_s=60.0), "beats"), task(2, NO_PERMIT, "episode")))
    assert not end.is_lost


@pytest.mark.parametrize(("first", "behind"), [(True, 0), (False, 1)])
def test_who_waits_for_the_first_of_several_is_kept_by_all_of_them_alone(first: bool, behind: int) -> None:
    both = task(1, Awaited(kind="gather", tasks=(2, 3), first=first), "main")
    (end,) = find_ends(of(both, task(2, NO_PERMIT, "episode", inner=IN_LOCK), task(3, Awaited(kind="sleep", delay_s=60.0), "beats")))
    assert end.behind == behind


def test_a_ring_with_another_way_out_stays_a_ring() -> None:
    both = task(1, Awaited(kind="gather", tasks=(2, 3)), "main")
    ends = find_ends(of(both, task(2, Awaited(kind="task", tasks=(1,)), "episode"), task(3, Awaited(kind="event", address=5), "waits")))
    assert [e.is_cycle for e in ends] == [True, False]


def test_the_holder_of_a_lock_is_where_the_waiting_ends() -> None:
    holder = task(1, Awaited(kind="event", detail="Event unset", address=5), "Pool.refill")
    (end,) = find_ends(of(holder, *(task(n, lock(1), "Pool.take") for n in range(2, 12))))
    assert (end.tasks, end.behind, end.awaited.kind) == ((holder,), 10, "event")


def test_two_locks_in_opposite_order() -> None:
    (end,) = find_ends(of(task(1, lock(2, address=71), "a"), task(2, lock(1, address=72), "b"), task(3, lock(1, address=72), "c")))
    assert end.is_cycle
    assert ([t.address for t in end.tasks], end.behind) == ([1, 2], 1)


def test_a_lock_that_was_just_released_is_no_end_of_waiting() -> None:
    free = Awaited(kind="semaphore", detail="Semaphore value=1", address=900, value=1)
    assert find_ends(of(task(1, free, "episode")))[0].is_lost is False


@pytest.mark.parametrize("name", ["serve_forever", "Proxy.wait_for_new_tasks", "Worker._run_loop", "get_next_request", "on_shutdown"])
def test_waiting_for_work_is_at_rest(name: str) -> None:
    one = task(1, Awaited(kind="event", detail="Event unset"), name)
    assert serves(one)
    assert rank(find_ends(of(one))[0]) == 9
    assert report(one).verdict.state is State.HEALTHY


def test_library_code_alone_is_at_rest() -> None:
    one = AsyncTask(address=1, name="t", chain=(AwaitFrame(function="Server.main_loop", file="uvicorn/server.py", line=3),), awaited=NO_PERMIT)
    assert serves(one)


def test_what_moved_is_not_stuck() -> None:
    (end,) = find_ends(of(task(1, Awaited(kind="future"), "call", stable=False)))
    assert not end.is_still
    assert report(task(1, Awaited(kind="future"), "call", stable=False)).findings == ()


def test_an_answer_that_streams_in_is_not_waited_for() -> None:
    reads = task(1, Awaited(kind="socket", fd=9), "generate")
    answer = Socket(family="tcp", state="ESTABLISHED", local="10.0.0.1:5000", remote="10.0.0.2:8000", fd=9, quiet_s=0.2)
    assert not find_ends(of(reads, sockets=(answer,)))[0].is_still


def test_lost_permits_are_told_with_line_and_count() -> None:
    main = task(1, Awaited(kind="gather", detail="gather of 30", tasks=tuple(range(2, 32))), "main")
    said = report(main, *(task(n, NO_PERMIT, "Agent.episode", inner=IN_LOCK) for n in range(2, 32)))
    finding = said.findings[0]
    assert (finding.id, finding.certainty) == ("RRD201", Certainty.LIKELY)
    assert "30 of 31 coroutines" in finding.summary
    assert "Agent.episode (agent.py:10) for Semaphore with 0 permits: no coroutine is left that could release it" in finding.summary


def test_the_main_thread_waits_for_episodes_of_its_loop() -> None:
    """AReaL's executor: the trainer's thread in a condition, the loop idle in a thread of its own, under uvloop."""
    waits = "Condition.wait@threading.py:331 Dispatcher.wait_results@areal/infra/workflow_executor.py:587 main@/job/train.py:7"
    stacks = Stacks()
    hung = msgspec.structs.replace(task(1, Awaited(kind="event", detail="Event unset"), "Workflow.arun_episode"), tid=1200)
    one = process(stacks, 200, "python", waits, kind="named", async_tasks=(hung,), extra_threads=[("Thread-1", "_run_thread@areal/run.py:3")])
    threads = tuple(msgspec.structs.replace(t, wchan="do_epoll_wait", syscall=281) if t.tid == 1200 else t for t in one.threads)
    finding = diagnose(snapshot(stacks.node([msgspec.structs.replace(one, threads=threads)]))).findings[0]
    assert finding.id == "RRD201"
    assert "1 of 1 coroutines" in finding.summary and "Workflow.arun_episode (agent.py:10)" in finding.summary


def test_an_answer_that_never_comes_names_the_peer() -> None:
    asks = tuple(task(n, Awaited(kind="socket", fd=9), "Agent.call_tool") for n in (1, 2, 3))
    silent = Socket(family="tcp", state="ESTABLISHED", local="10.0.0.1:5000", remote="10.0.0.2:8000", fd=9, quiet_s=80.0)
    finding = report(*asks, sockets=(silent,)).findings[0]
    assert (finding.id, [w.label for w in finding.who][1]) == ("RRD201", "10.0.0.2:8000")
    assert "3 of 3 coroutines" in finding.summary and "an answer of 10.0.0.2:8000" in finding.summary
    assert any("nothing came in for 80 s" in e.text for e in finding.evidence)


def test_an_idle_server_is_not_accused() -> None:
    listens = Socket(family="tcp", state="LISTEN", local="0.0.0.0:80")
    assert report(task(1, Awaited(kind="future", detail="Future"), "main"), sockets=(listens,)).findings == ()


def test_a_blocked_loop_tells_how_long_its_timers_wait() -> None:
    text = "post@requests/api.py:115 Agent.call_tool@/job/agent.py:47 _run_once@asyncio/base_events.py:1884 run_forever@asyncio/base_events.py:607"
    runs = task(1, Awaited(kind="running"), "Agent.episode")
    late = task(2, Awaited(kind="sleep", delay_s=1.0, due_s=-41.5), "beats")
    finding = report(runs, late, stack=text, wchan="wait_woken", syscall=45).findings[0]
    assert finding.id == "RRD202"
    assert finding.evidence[-1].text == "the loop executes task Task-1 (Agent.episode); 1 of its timers are overdue, the oldest by 41.5 s"
