"""Coroutines of async actors: behind Ray's own, which Cython wrote, down to the object that is awaited."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from typing import Any

import pytest
from clusters import program

from ray_rl_debug.collect.async_tasks import read_async_tasks
from ray_rl_debug.model.snapshot import AsyncTask

pytestmark = pytest.mark.integration
KINDS = {"on_event": "event", "on_permit": "semaphore", "on_ref": "objectref", "on_both": "gather", "on_queue": "queue"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="rrd", dir="/tmp") as folder, program("async_actor.py", folder) as told:
        yield told


def calls(tasks: tuple[AsyncTask, ...]) -> dict[str, AsyncTask]:
    """The calls of the actor's methods: those that Ray's coroutine leads."""
    found = {}
    for task in tasks:
        names = [f.function for f in task.chain]
        if names[0].startswith("run_async_func"):
            found[next(n for n in names if n.startswith("Agent.")).removeprefix("Agent.")] = task
    return found


def test_five_calls(cluster: dict[str, Any]) -> None:
    tasks, gap = read_async_tasks(cluster["pid"], deadline_s=10)
    assert gap is None
    assert tasks is not None
    found = calls(tasks)
    inner = {t.address: t for t in tasks}
    kinds = {name: task.awaited.kind for name, task in found.items() if task.awaited is not None}
    waits = found["on_queue"].awaited
    assert waits is not None
    if waits.kind == "task":  # up to 3.11 wait_for makes a task of what it is given
        deeper = inner[waits.tasks[0]].awaited
        assert deeper is not None
        kinds["on_queue"] = deeper.kind
    assert kinds == KINDS
    awaited = found["on_ref"].awaited
    assert awaited is not None and awaited.object_id == cluster["ref"]
    both = found["on_both"].awaited
    assert both is not None
    assert {f.function for a in both.tasks for f in inner[a].chain if f.function.startswith("Agent.")} == {"Agent.on_event", "Agent.on_permit"}
    assert all((f.file or "").endswith("async_actor.py") and f.line for t in found.values() for f in t.chain if f.function.startswith("Agent."))


def test_the_call_that_blocks_its_loop(cluster: dict[str, Any]) -> None:
    tasks, gap = read_async_tasks(cluster["blocked"], deadline_s=10)
    assert gap is None
    running = [t for t in tasks or () if t.awaited is not None and t.awaited.kind == "running"]
    assert len(running) == 1
    assert running[0].chain[0].function.startswith("run_async_func")
    assert {t.awaited.kind for t in tasks or () if t.awaited is not None} >= {"running", "event"}


def test_it_is_quick(cluster: dict[str, Any]) -> None:
    """Some hundred reads of memory; ten times what a free core needs."""
    began = time.process_time()
    read_async_tasks(cluster["pid"], deadline_s=10)
    assert time.process_time() - began < 1.0
