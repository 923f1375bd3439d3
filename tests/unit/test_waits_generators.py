"""Generators of Ray that are held back: they wait for their caller, who may wait for a call behind them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from scenes import IDLE, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Cause, Report, State
from ray_rl_debug.model.snapshot import OwnedTask, RayTask, Snapshot, Thread

RECORDED = Path(__file__).parents[1] / "kinds" / "recorded"
PLAY, STATE = 1, 2


@pytest.mark.parametrize(
    ("wchan", "driver", "is_hang"),
    [
        ("futex_do_wait", f"{RAY_GET} main@/job/train.py:38", True),
        ("do_epoll_wait", f"{RAY_GET} main@/job/train.py:38", False),
        ("futex_do_wait", "work@/job/kit.py:69 main@/job/train.py:36", False),
    ],
    ids=["held back", "rests at its connections", "its caller works"],
)
def test_a_generator_without_a_frame_waits_for_its_caller(wchan: str, driver: str, is_hang: bool) -> None:
    stacks = Stacks()
    asks = {"refs": [task_id(STATE)], "wchan": "futex_do_wait"} if is_hang or RAY_GET in driver else {"cpu_s": 1.9}
    main = process(stacks, 10, "python train.py", driver, kind="driver", ppid=1, **asks)  # type: ignore[arg-type]
    sampler = process(stacks, 20, "ray::Sampler", IDLE, wchan=wchan)
    owned = [
        OwnedTask(task_id=task_id(n), name=f"Sampler.{name}", status="SUBMITTED_TO_WORKER", actor_id=f"{7:032x}")
        for n, name in ((PLAY, "play"), (STATE, "state"))
    ]
    tasks = [
        RayTask(task_id=task_id(n), name=f"Sampler.{name}", state=state, job_id="01000000", kind="ACTOR_TASK", actor_id=f"{7:032x}", pid=20)
        for n, name, state in ((PLAY, "play", "RUNNING"), (STATE, "state", "SUBMITTED_TO_WORKER"))
    ]
    cores = [core(20, running=[PLAY], actor_number=7), core(10, owned=owned)]
    report = diagnose(snapshot(stacks.node([main, sampler]), ray_state(actors=[actor(7, "Sampler", 20)], tasks=tasks, cores=cores)))
    assert (report.verdict.state is State.HANG) is is_hang
    assert not is_hang or (report.findings[0].cause is Cause.RAY_GET_CYCLE and {w.pid for w in report.findings[0].who} == {10, 20})


def recorded(name: str) -> Snapshot:
    snapshot = load((RECORDED / f"{name}.json.gz",)).snapshot
    assert snapshot is not None
    return snapshot


def with_main_thread(snapshot: Snapshot, title: str, change: Callable[[Thread], Thread]) -> Snapshot:
    (node,) = snapshot.nodes
    processes = []
    for one in node.processes:
        threads = tuple(change(t) if t.tid == one.pid and title in one.title else t for t in one.threads)
        processes.append(msgspec.structs.replace(one, threads=threads))
    return msgspec.structs.replace(snapshot, nodes=(msgspec.structs.replace(node, processes=tuple(processes)),))


def ring(report: Report) -> set[str]:
    return {w.label for f in report.findings if f.id == "RRD401" and report.verdict.state is State.HANG for w in f.who}


@pytest.mark.parametrize("name", ["stream_of_samples-hang", "flush_of_streamer-hang"])
def test_a_generator_waits_for_the_caller_who_waits_for_another_call_of_it(name: str) -> None:
    assert ring(diagnose(recorded(name))) == {"driver", "Sampler"}


def test_whoever_waits_for_what_a_held_generator_keeps_is_in_its_ring() -> None:
    assert ring(diagnose(recorded("streams_in_order-hang"))) == {"Sampler"}


def test_a_worker_that_looks_for_calls_is_no_generator() -> None:
    def looks(thread: Thread) -> Thread:
        return msgspec.structs.replace(thread, wchan="do_epoll_wait", call="epoll_wait", syscall=232)

    assert not ring(diagnose(with_main_thread(recorded("flush_of_streamer-hang"), "Sampler", looks)))


@pytest.mark.parametrize("name", ["stream_of_samples-healthy", "flush_of_streamer-healthy", "streams_in_order-healthy"])
def test_a_generator_that_works_is_not_held_back(name: str) -> None:
    assert not ring(diagnose(recorded(name)))
