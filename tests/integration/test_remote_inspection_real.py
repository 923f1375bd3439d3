"""CPython's own remote inspection beside our reader: the tool on Python 3.14, the target too."""

import json
import os
import subprocess
from pathlib import Path

import msgspec
import pytest
from programs import starting
from pythons import find_python
from test_async_tasks_real import PROGRAM, check, python_of

from ray_rl_debug.model.snapshot import AsyncTask, Gap

pytestmark = pytest.mark.integration
start = pytest.fixture(starting, name="start")

ROOT = Path(__file__).parents[2]
TOOL = """
import sys
import msgspec
from ray_rl_debug.collect.async_tasks import layout, read_async_tasks
from ray_rl_debug.collect.async_tasks.remote_inspection import inspect_remotely, merge
pid, how = int(sys.argv[1]), sys.argv[2]
if how == "unknown build":
    del layout.LAYOUTS[3, 14]
tasks, gap = read_async_tasks(pid)
told = inspect_remotely(pid, deadline_s=10, max_tasks=1000)
told = merge((), told, list, {}) if told is not None else None
assert "ray" not in sys.modules
sys.stdout.buffer.write(msgspec.json.encode([tasks, gap, told]))
"""
Answer = tuple[tuple[AsyncTask, ...] | None, Gap | None, tuple[AsyncTask, ...] | None]


@pytest.fixture(scope="module")
def tool():
    python = find_python("3.14", "msgspec")
    if python is None:
        pytest.skip("no CPython 3.14 with msgspec on this machine")

    def look(child, how="both") -> Answer:
        done = subprocess.run(
            [python, "-c", TOOL, str(child.pid), how], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return msgspec.json.decode(done.stdout, type=Answer)

    return look


def test_both_agree(tool, start, tmp_path):
    path = tmp_path / "truth"
    child = start(python_of("3.14"), PROGRAM, path, ready=path)
    tasks, gap, told = tool(child)
    assert gap is None
    check(json.loads(path.read_text()), tasks)
    own = {t.address: t for t in tasks}
    assert len(told) > 25 and {t.address for t in told} <= set(own)
    lines = {t.address: [(f.file, f.line) for f in t.chain] for t in tasks}
    assert [t for t in told if lines[t.address][: len(t.chain)] != [(f.file, f.line) for f in t.chain]] == []


def test_a_build_that_our_table_does_not_know(tool, start, tmp_path):
    """Chains and who awaits whom are told by CPython; that what they finally await was not read stays a gap."""
    path = tmp_path / "truth"
    child = start(python_of("3.14"), PROGRAM, path, ready=path)
    tasks, gap, told = tool(child, "unknown build")
    assert tasks is not None and len(tasks) == len(told)
    assert gap.what.endswith("what all of them finally await") and "no known layout" in gap.reason
    truth = {int(address): t for address, t in json.loads(path.read_text()).items()}
    found = {truth[t.address]["name"]: t for t in tasks if t.address in truth}
    kinds = {name: found[name].awaited.kind for name in ("acquires", "leaked permit", "gets", "waits", "nap ☃", "gathers", "task", "future")}
    expected = {"acquires": "lock", "leaked permit": "semaphore", "gets": "queue", "waits": "event", "nap ☃": "sleep", "gathers": "gather"}
    assert kinds == {**expected, "task": "task", "future": "future"}
    assert found["task"].awaited.tasks == (found["nap ☃"].address,)
    assert {t.tid for t in found.values()} == {child.pid}


def test_another_version_is_read_by_our_reader(tool, start, tmp_path):
    path = tmp_path / "truth"
    child = start(python_of("3.12"), PROGRAM, path, ready=path)
    tasks, gap, told = tool(child)
    assert (gap, told) == (None, None)
    check(json.loads(path.read_text()), tasks)
