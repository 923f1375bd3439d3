"""A gate of rollouts is closed only for whoever waits behind it: the executor's own threads rest at it all the time."""

from __future__ import annotations

import pytest
from scenes import Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Report

FILE = "areal/infra/workflow_executor.py"
WAITS = "Condition.wait@threading.py:320"
STARTED = "Thread.run@threading.py:975 Thread._bootstrap_inner@threading.py:1038 Thread._bootstrap@threading.py:995"
AT_RESULTS = f"{WAITS} BatchTaskDispatcher.wait_results@{FILE}:587 WorkflowExecutor.prepare_batch@{FILE}:1328 main@app/train.py:40"
AT_LOCK = "main@app/train.py:52 <module>@app/train.py:60"
RESTS = f"{WAITS} BatchTaskDispatcher._get_next_task_for_submission@{FILE}:448 BatchTaskDispatcher._commit_loop@{FILE}:360 {STARTED}"
SAVES = f"{WAITS} Event.wait@threading.py:629 save_weights@app/train.py:20 {STARTED}"
FETCHES = f"{WAITS} Queue.get@queue.py:180 take@pieces/source.py:9 {STARTED}"


def judged(main: str, *others: tuple[str, str]) -> Report:
    stacks = Stacks()
    trainer = process(
        stacks,
        100,
        "python train.py",
        main,
        kind="named",
        extra_threads=[("Thread-1 (_commit_loop)", RESTS), *others],
        wchan="futex_do_wait",
        syscall=202,
    )
    return diagnose(snapshot(stacks.node([trainer])))


def test_whoever_waits_for_rollouts_stands_behind_it() -> None:
    assert [f.cause.value for f in judged(AT_RESULTS).findings] == ["staleness-gate"]


def test_whoever_waits_for_a_lock_does_not() -> None:
    assert "staleness-gate" not in [f.cause.value for f in judged(AT_LOCK, ("saver", SAVES)).findings]


@pytest.mark.parametrize("order", [1, -1], ids=["the saver first", "the saver last"])
def test_a_lock_is_told_with_the_thread_of_the_same_file(order: int) -> None:
    found = judged(AT_LOCK, *[("saver", SAVES), ("source", FETCHES)][::order]).findings
    assert [f.cause.value for f in found] == ["lock-deadlock"]
    assert "its thread saver waits for an event" in found[0].summary
