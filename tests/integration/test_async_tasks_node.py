"""Hanging event loops of real processes, from the node's collector to the report."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import DEADLINE_S, starting

from ray_rl_debug.collect.node import collect_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Finding, State
from ray_rl_debug.model.snapshot import Node, Snapshot

pytestmark = pytest.mark.integration

start = pytest.fixture(starting, name="start")
Start = Callable[..., Any]

PERMITS = """
import asyncio, sys
async def episode(permits):
    async with permits:
        raise AssertionError("nobody gives one back")
async def main():
    permits = asyncio.Semaphore(2)
    await permits.acquire()
    await permits.acquire()
    tasks = [asyncio.create_task(episode(permits)) for _ in range(30)]
    await asyncio.sleep(0.1)
    open(sys.argv[1], "w").close()
    await asyncio.gather(*tasks)
asyncio.run(main())
"""
SERVER = """
import socket, sys
server, kept = socket.create_server(("127.0.0.1", 0)), []
open(sys.argv[1] + ".part", "w").write(str(server.getsockname()[1]))
import os; os.rename(sys.argv[1] + ".part", sys.argv[1])
while True:
    kept.append(server.accept())
"""
CLIENT = """
import asyncio, sys
async def call_tool(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"run\\n")
    return await reader.readline()
async def main():
    tasks = [asyncio.create_task(call_tool(int(sys.argv[2]))) for _ in range(4)]
    await asyncio.sleep(0.2)
    open(sys.argv[1], "w").close()
    await asyncio.gather(*tasks)
asyncio.run(main())
"""
BLOCKED = """
import asyncio, sys, threading, time
if sys.argv[2:]:
    import uvloop
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
async def blocks():
    open(sys.argv[1], "w").close()
    time.sleep(1000)
async def waits():
    await asyncio.sleep(0.01)
async def main():
    await asyncio.gather(*(waits() for _ in range(5)), blocks())
def run_loop():
    asyncio.run(main())
thread = threading.Thread(target=run_loop)
thread.start()
thread.join()
"""


def written(folder: Path, text: str) -> Path:
    """A file of its own for each program."""
    path = folder / f"program{len(list(folder.glob('*.py')))}.py"
    path.write_text(text)
    return path


def look(*pids: int) -> tuple[Node, Finding]:
    node = collect_node(CollectOptions(pids=pids, samples=3, interval_s=0.4, logs=False))
    report = diagnose(Snapshot(taken_time_s=time.time(), nodes=(node,)))
    # who sleeps for a long time in the middle of a loop is slow: the sleep ends by itself
    assert report.verdict.state in (State.HANG, State.UNKNOWN, State.SLOW), report.verdict
    return node, report.findings[0]


def test_lost_permits(start: Start, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    child = start(sys.executable, written(tmp_path, PERMITS), ready, ready=ready)
    node, finding = look(child.pid)
    tasks = node.processes[0].async_tasks
    assert tasks is not None
    assert (len(tasks), {t.stable for t in tasks}) == (31, {True})
    assert finding.cause is Cause.ASYNCIO_STUCK
    assert "30 of 31 coroutines" in finding.summary
    assert "at episode" in finding.summary and "Semaphore with 0 permits: no coroutine is left that could release it" in finding.summary


def test_a_server_that_never_answers_is_named(start: Start, tmp_path: Path) -> None:
    listening, ready = tmp_path / "port", tmp_path / "ready"
    server = start(sys.executable, written(tmp_path, SERVER), listening, ready=listening)
    client = start(sys.executable, written(tmp_path, CLIENT), ready, listening.read_text(), ready=ready)
    time.sleep(1.0)  # the connection must have been silent for as long as the window is
    _, finding = look(client.pid, server.pid)
    assert finding.cause is Cause.BLOCKED_IO
    assert [w.pid for w in finding.who] == [server.pid]
    assert f"does not answer program1.py (pid {client.pid}: its coroutines await an answer)" in finding.summary
    assert any(f"127.0.0.1:{listening.read_text()}" in e.text and "call_tool" in e.text for e in finding.evidence), finding.evidence


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_blocked_loop_in_a_thread(loop: str, start: Start, tmp_path: Path) -> None:
    if importlib.util.find_spec(loop) is None:
        pytest.skip("uvloop is not installed")
    ready = tmp_path / "ready"
    child = start(sys.executable, written(tmp_path, BLOCKED), ready, *(["uvloop"] if loop == "uvloop" else []), ready=ready)
    end = time.monotonic() + DEADLINE_S
    while True:  # ready before it sleeps
        node, finding = look(child.pid)
        if finding.cause is Cause.EVENT_LOOP_BLOCKED or time.monotonic() > end:
            break
    assert finding.cause is Cause.EVENT_LOOP_BLOCKED
    assert "blocks" in finding.summary and "of its coroutines cannot run" in finding.summary
    assert "running" in {t.awaited.kind for t in node.processes[0].async_tasks or () if t.awaited is not None}
