"""Processes that move, end or become others while their asyncio tasks are read."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from programs import DEADLINE_S, starting, wait_for
from pythons import VERSIONS, find_python

from ray_rl_debug.collect.async_tasks import read_async_tasks
from ray_rl_debug.model import gaps

pytestmark = pytest.mark.integration

CHURN = Path(__file__).with_name("churn_program.py")
READS = int(os.environ.get("RAYRL_DEBUG_READS", "250"))
"""Per version of Python; 1,000 over all of them."""

start = pytest.fixture(starting, name="start")


def invented(chain, own):
    """What of a chain cannot be: a function that is not there, a line where it never stands, a callee that it does not await."""
    for i, frame in enumerate(chain):
        if frame.file != str(CHURN):
            if not (frame.file or "").startswith("asyncio/"):
                return frame
            continue
        lines, callees = own.get(frame.function, ((), ()))
        if frame.line is not None and frame.line not in lines:
            return frame
        if i + 1 < len(chain) and chain[i + 1].function not in callees:
            return chain[i : i + 2]
    return None


@pytest.mark.parametrize("version", VERSIONS)
def test_no_invented_frame_while_tasks_come_and_go(version, start, tmp_path):
    python = find_python(version)
    if python is None:
        pytest.skip(f"no CPython {version} on this machine")
    path = tmp_path / "truth"
    child = start(python, CHURN, path, ready=path)
    truth = json.loads(path.read_text())
    seen = moved = 0
    for _ in range(READS):
        tasks, gap = read_async_tasks(child.pid, deadline_s=DEADLINE_S)  # the machine may be busy with others
        assert tasks is not None and (gap is None or gap.id in (gaps.ASYNC_UNREAD, gaps.TRUNCATED)), gap
        by_name = {t.name: t for t in tasks}
        for name, (function, line) in truth["stands"].items():
            task = by_name[name]
            assert (task.chain[0].function, task.chain[0].line, task.stable) == (function, line, None), name
        assert by_name["wants"].awaited.holders == (by_name["holds"].address,)
        for task in tasks:
            if task.awaited.kind != "running":
                assert invented(task.chain, truth["own"]) is None, (task.name, task.chain)
            moved += task.stable is False
        seen += len(tasks)
    assert seen / READS > len(truth["stands"]) + 3  # of those that come and go some are read, however busy the machine is
    assert child.poll() is None


EXECS = """
import asyncio, os, sys, threading, time
open(sys.argv[1], "w").close()
async def waits():
    await asyncio.get_running_loop().create_future()
def becomes():
    time.sleep(0.03)
    os.execv(sys.executable, [sys.executable, "-S", "-E", *sys.argv[2:4], sys.argv[1], *sys.argv[2:]])
threading.Thread(target=becomes).start()
async def main():
    await asyncio.gather(*(waits() for _ in range(200)))
asyncio.run(main())
"""


def test_a_process_that_executes_others_all_the_time(start, tmp_path):
    ready = tmp_path / "ready"
    child = start(sys.executable, "-S", "-E", "-c", EXECS, ready, "-c", EXECS, ready=ready)
    end, outcomes = time.monotonic() + 6, set()
    while time.monotonic() < end:
        tasks, gap = read_async_tasks(child.pid)
        outcomes.add((tasks is not None, gap.id if gap else None))
        for task in tasks or ():
            assert {f.function for f in task.chain if f.file == "<string>"} <= {"main", "waits"}, task
    unread = (gaps.ASYNC_UNREAD, gaps.TRUNCATED, gaps.PROCESS_GONE)
    assert outcomes <= {(True, None), (False, None), *((True, u) for u in unread[:2]), *((False, u) for u in unread)}
    assert child.poll() is None


def test_processes_that_are_killed_while_they_are_read(start, tmp_path):
    for number in range(12):
        path = tmp_path / f"truth{number}"
        child = start(sys.executable, CHURN, path, ready=path)
        killer = threading.Timer(0.002 * number, os.killpg, (child.pid, signal.SIGKILL))
        killer.start()
        while True:
            tasks, gap = read_async_tasks(child.pid)
            assert all(invented(t.chain, json.loads(path.read_text())["own"]) is None for t in tasks or () if t.awaited.kind != "running")
            if (gap is not None and gap.id == gaps.PROCESS_GONE) or (tasks is None and gap is None):
                break
        killer.join()
        child.wait()


def test_a_stopped_process_is_read_and_stays_stopped(start, tmp_path):
    path = tmp_path / "truth"
    child = start(sys.executable, CHURN, path, ready=path)
    os.kill(child.pid, signal.SIGSTOP)
    state = lambda: Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]  # noqa: E731
    wait_for(lambda: state() == "T", "it does not stop")
    tasks, gap = read_async_tasks(child.pid, deadline_s=DEADLINE_S)
    assert gap is None
    assert {f"stuck {i}" for i in range(20)} <= {t.name for t in tasks}
    assert state() == "T"
