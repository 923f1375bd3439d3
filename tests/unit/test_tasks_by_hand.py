"""Coroutines that somebody printed: frames below a task are its chain, and those that all want a lock get a hypothesis."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty, Report

OBJECTS = """\
*** TASK: <Task pending name='Task-7' coro=<put() running at /app/pool.py:41> wait_for=<Future pending>> ***
<frame at 0x7f0c21, file '/app/pool.py', line 41, code put>
<frame at 0x7f0c22, file '/venv/lib/python3.9/site-packages/anyio/_core/_synchronization.py', line 130, code acquire>
*** TASK: <Task pending name='Task-8' coro=<close() running at /app/pool.py:70> wait_for=<Future pending>> ***
<frame at 0x7f0c31, file '/app/pool.py', line 70, code close>
<frame at 0x7f0c32, file '/venv/lib/python3.9/site-packages/anyio/_core/_synchronization.py', line 130, code acquire>
"""
SHOWN = """\
Stack for <Task pending name='Task-3' coro=<put() running at /app/pool.py:41> wait_for=<Future pending>> (most recent call last):
  File "/app/pool.py", line 41, in put
    async with self._lock:
  File "/usr/lib/python3.11/asyncio/locks.py", line 15, in __aenter__
    await self.acquire()
  File "/usr/lib/python3.11/asyncio/locks.py", line 120, in acquire
    await fut
"""
AT_WORK = """\
Stack for <Task pending name='Task-4' coro=<fetch() running at /app/pool.py:90> wait_for=<Future pending>> (most recent call last):
  File "/app/pool.py", line 90, in fetch
    await self._session.get(url)
  File "/venv/lib/python3.11/site-packages/aiohttp/client.py", line 730, in _request
    await resp.start(conn)
"""


def report_on(text: str, folder: Path) -> Report:
    """The report on one pasted text."""
    post = folder / "post.md"
    post.write_text(text)
    return diagnose(load([post]).snapshot)


def test_frame_objects_below_a_printed_task_are_its_chain() -> None:
    (dump,) = [d for d in read(OBJECTS) if d.tasks]
    assert [(t.name, [f[0] for f in t.chain]) for t in dump.tasks or ()] == [("Task-7", ["put", "acquire"]), ("Task-8", ["close", "acquire"])]


@pytest.mark.parametrize("text", [OBJECTS, SHOWN], ids=["frame-objects", "print-stack"])
def test_coroutines_that_all_want_a_lock_are_a_hypothesis(text: str, tmp_path: Path) -> None:
    finding = next(f for f in report_on(text, tmp_path).findings if f.root)
    assert (finding.id, finding.certainty) == ("RRD201", Certainty.POSSIBLE)


def test_one_that_is_elsewhere_may_have_the_lock(tmp_path: Path) -> None:
    assert not [f for f in report_on(SHOWN + AT_WORK, tmp_path).findings if f.root]
