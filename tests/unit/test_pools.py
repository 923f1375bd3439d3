"""Pools of processes and threads: idle workers rest, busy ones show their progress, and forked children have places of their own."""

from __future__ import annotations

import msgspec
import pytest
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, State
from ray_rl_debug.model.snapshot import Local, Process, Snapshot

PARENT, FIRST, SECOND = 100, 200, 201
FORK = (
    "BaseProcess._bootstrap@multiprocessing/process.py:314 Popen._launch@multiprocessing/popen_fork.py:71"
    " BaseProcess.start@multiprocessing/process.py:121 main@app/train.py:9"
)
SPAWN = "BaseProcess._bootstrap@multiprocessing/process.py:314 _main@multiprocessing/spawn.py:135 spawn_main@multiprocessing/spawn.py:122"
RECEIVE = "Connection._recv@multiprocessing/connection.py:395 Connection.recv@multiprocessing/connection.py:250"
OF_EXECUTOR = f"{RECEIVE} _process_worker@concurrent/futures/process.py:249 BaseProcess.run@multiprocessing/process.py:108"
OF_POOL = f"{RECEIVE} worker@multiprocessing/pool.py:114 BaseProcess.run@multiprocessing/process.py:108"
BY_HAND = f"{RECEIVE} answer_jobs@app/rewards.py:16 BaseProcess.run@multiprocessing/process.py:108"
ASKS_BACK = f"{RECEIVE} ask_parent@app/rewards.py:30 answer_jobs@app/rewards.py:17 BaseProcess.run@multiprocessing/process.py:108"
SCORES = "score@app/rewards.py:5 worker@multiprocessing/pool.py:125 BaseProcess.run@multiprocessing/process.py:108"
GETS = "wait@threading.py:629 ApplyResult.get@multiprocessing/pool.py:768 main@app/train.py:20"
PAUSES = "wait_for_orders@app/train.py:30"


def child(stacks: Stacks, pid: int, text: str, **more: object) -> Process:
    return process(stacks, pid, "python train.py", text, kind="child", ppid=PARENT, wchan="anon_pipe_read", **more)  # type: ignore[arg-type]


def pool(parent: str, *workers: Process, stacks: Stacks) -> Snapshot:
    main = process(stacks, PARENT, "python train.py", parent, kind="named", wchan="hrtimer_nanosleep" if parent == PAUSES else "futex_do_wait")
    return snapshot(stacks.node([main, *workers]))


@pytest.mark.parametrize("started", [FORK, SPAWN], ids=["fork", "spawn"])
@pytest.mark.parametrize("rests", [OF_EXECUTOR, OF_POOL, BY_HAND], ids=["executor", "pool", "by hand"])
def test_an_idle_worker_rests(rests: str, started: str) -> None:
    stacks = Stacks()
    whole = pool(PAUSES, child(stacks, FIRST, f"{rests} {started}"), stacks=stacks)
    assert build_view(whole).seen[f"node1/{FIRST}"].is_idle
    report = diagnose(whole)
    assert report.findings == ()
    assert report.verdict.state is State.SLOW  # the parent only pauses


def test_a_child_that_asks_its_parent_does_not_rest() -> None:
    stacks = Stacks()
    whole = pool(GETS, child(stacks, FIRST, f"{ASKS_BACK} {SPAWN}"), stacks=stacks)
    assert not build_view(whole).seen[f"node1/{FIRST}"].is_idle


def at_item(stacks: Stacks, *numbers: int) -> Process:
    """A worker met at the same place in every sample, at these items of its job."""
    one = child(stacks, FIRST, f"{SCORES} {SPAWN}", cpu_s=1.9)
    samples = []
    for sample, number in zip(one.samples, numbers, strict=True):
        kept = (Local(frame=1, name="job", value="3"), Local(frame=1, name="i", value=str(number)))
        samples.append(msgspec.structs.replace(sample, threads=tuple(msgspec.structs.replace(t, locals=kept) for t in sample.threads)))
    return msgspec.structs.replace(one, samples=tuple(samples))


@pytest.mark.parametrize(("numbers", "motion"), [((4, 5, 7), Motion.MOVING), ((4, 4, 4), Motion.BUSY)])
def test_the_item_tells_whether_a_busy_worker_goes_on(numbers: tuple[int, int, int], motion: Motion) -> None:
    stacks = Stacks()
    whole = pool(GETS, at_item(stacks, *numbers), child(stacks, SECOND, f"{OF_POOL} {SPAWN}"), stacks=stacks)
    assert build_view(whole).seen[f"node1/{FIRST}"].motion is motion
    assert (diagnose(whole).verdict.state is State.HEALTHY) is (motion is Motion.MOVING)


def test_tasks_taken_and_results_given_are_progress() -> None:
    stacks = Stacks()
    busy = msgspec.structs.replace(child(stacks, FIRST, f"score@app/rewards.py:5 answer_jobs@app/rewards.py:17 {SPAWN}", cpu_s=1.9), read_bytes=60)
    one_way = pool(GETS, busy, stacks=stacks)
    both_ways = pool(GETS, msgspec.structs.replace(busy, written_bytes=90), stacks=stacks)
    assert build_view(one_way).seen[f"node1/{FIRST}"].motion is Motion.BUSY
    assert build_view(both_ways).seen[f"node1/{FIRST}"].motion is Motion.MOVING


def test_workers_behind_a_fork_server_are_those_of_the_pool() -> None:
    stacks = Stacks()
    server = child(stacks, 150, "main@multiprocessing/forkserver.py:230 <module>@<string>:1")
    worker = msgspec.structs.replace(child(stacks, FIRST, f"{SCORES} {SPAWN}"), ppid=150)
    view = build_view(pool(GETS, server, worker, stacks=stacks))
    assert [c.process.pid for c in view.children(view.seen[f"node1/{PARENT}"])] == [FIRST]


@pytest.mark.parametrize(
    ("feeder", "sure"),
    [
        ("Semaphore.acquire@threading.py:479 prompts@app/train.py:39", Certainty.LIKELY),
        ("Queue.get@queue.py:171", Certainty.POSSIBLE),
    ],
    ids=["it waits for its next task in the program", "it rests"],
)
def test_a_pool_whose_next_task_is_not_made_has_lost_none(feeder: str, sure: Certainty) -> None:
    stacks = Stacks()
    hands_out = f"Condition.wait@threading.py:327 {feeder} Pool._handle_tasks@multiprocessing/pool.py:535 Thread.run@threading.py:982"
    gets = "Condition.wait@threading.py:327 IMapIterator.next@multiprocessing/pool.py:861 main@app/train.py:47"
    main = process(stacks, PARENT, "python train.py", gets, kind="named", wchan="futex_do_wait", extra_threads=[("tasks", hands_out)])
    workers = [child(stacks, pid, f"{OF_POOL} {SPAWN}") for pid in (FIRST, SECOND)]
    (finding,) = diagnose(snapshot(stacks.node([main, *workers]))).findings
    assert (finding.cause, [w.pid for w in finding.who], finding.certainty) == (Cause.LOCK_DEADLOCK, [PARENT], sure)
    assert ("that hands it out" in finding.summary) is (sure is Certainty.LIKELY)


@pytest.mark.parametrize(("wakes_in_s", "state"), [(20.0, State.SLOW), (90_000.0, State.UNKNOWN)], ids=["soon", "not today"])
def test_a_pool_whose_next_task_comes_after_a_pause_is_slow(wakes_in_s: float, state: State) -> None:
    stacks = Stacks()
    hands_out = "prompts@app/train.py:39 Pool._handle_tasks@multiprocessing/pool.py:535 Thread.run@threading.py:982"
    gets = "Condition.wait@threading.py:327 IMapIterator.next@multiprocessing/pool.py:861 main@app/train.py:47"
    main = process(stacks, PARENT, "python train.py", gets, kind="named", wchan="futex_do_wait", extra_threads=[("tasks", hands_out)])
    first, feeder = main.threads
    asleep = msgspec.structs.replace(feeder, wchan="hrtimer_nanosleep", call="clock_nanosleep", wakes_in_s=wakes_in_s)
    workers = [child(stacks, pid, f"{OF_POOL} {SPAWN}") for pid in (FIRST, SECOND)]
    report = diagnose(snapshot(stacks.node([msgspec.structs.replace(main, threads=(first, asleep)), *workers])))
    assert report.verdict.state is state
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)
    assert "the task is lost" not in report.verdict.summary
