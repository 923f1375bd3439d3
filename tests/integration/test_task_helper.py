"""A prepared process tells its asyncio tasks itself, also where its memory may not be read, and also while its loop is blocked."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from programs import starting

from ray_rl_debug.collect.async_tasks import attach, read_all_async_tasks, read_async_tasks
from ray_rl_debug.collect.async_tasks.asked import ask_helper
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Gap

pytestmark = pytest.mark.integration

PROGRAM = Path(__file__).with_name("async_program.py")
WITH_HELPER = (
    "import runpy, sys; from ray_rl_debug.task_helper import answer; answer(); answer(); sys.argv = sys.argv[1:];"
    " runpy.run_path(sys.argv[0], run_name='__main__')"
)
BLOCKED = """
import asyncio, sys, time
from ray_rl_debug.task_helper import answer
answer()
async def waits():
    await asyncio.Event().wait()
async def main():
    keep = [asyncio.create_task(waits(), name=f"waits {i}") for i in range(3)]
    await asyncio.sleep(0.01)
    open(sys.argv[1], "w").close()
    time.sleep(1000)
asyncio.run(main())
"""

start = pytest.fixture(starting, name="start")


def test_what_it_tells_is_what_is_read(start, tmp_path):
    path = tmp_path / "truth"
    child = start(sys.executable, "-c", WITH_HELPER, PROGRAM, path, ready=path)
    told = {t.address: t for t in ask_helper(child.pid, deadline_s=10)}
    read, _ = read_async_tasks(child.pid, deadline_s=10)
    assert told.keys() == {t.address for t in read}
    for task in read:
        mine = told[task.address]
        assert (mine.name, mine.loop, mine.tid) == (task.name, task.loop, task.tid)
        assert [f for f in mine.chain if f.file] == [f for f in task.chain if f.file], task.name
    semaphore = next(t for t in told.values() if t.name == "no permit").awaited
    assert (semaphore.kind, semaphore.value) == ("semaphore", 0)


def test_a_blocked_loop_answers(start, tmp_path):
    ready = tmp_path / "ready"
    child = start(sys.executable, "-c", BLOCKED, ready, ready=ready)
    told = ask_helper(child.pid, deadline_s=10)
    assert {t.name for t in told} == {"Task-1", "waits 0", "waits 1", "waits 2"}


def test_it_is_asked_where_memory_is_refused(start, tmp_path, monkeypatch):
    ready = tmp_path / "ready"
    child = start(sys.executable, "-c", BLOCKED, ready, ready=ready)
    refused = Gap(id=gaps.MEMORY_REFUSED, where=f"/{child.pid}", what="asyncio tasks", reason="Permission denied")
    monkeypatch.setattr(attach, "read_async_tasks", lambda pid, **_: (None, refused))
    monkeypatch.setattr(attach, "ASKED_S", 10.0)
    found = read_all_async_tasks([child.pid, os.getpid()], total_s=20)
    assert len(found[child.pid].tasks) == 4
    assert found[child.pid].gap is None
    assert (found[os.getpid()].tasks, found[os.getpid()].gap) == (None, refused)


def test_nobody_answers_without_it():
    assert ask_helper(os.getpid()) is None
    assert ask_helper(2**22 + 5) is None
    assert importlib.util.find_spec("ray_rl_debug.task_helper") is not None
