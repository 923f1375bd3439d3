"""Asyncio tasks of real processes, against what each process itself knows."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from programs import DEADLINE_S, starting, wait_for
from pythons import VERSIONS, find_python

from ray_rl_debug.collect.async_tasks import attach_async_tasks, read_all_async_tasks, read_async_tasks
from ray_rl_debug.formats.stack_table import short_file
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Process

pytestmark = pytest.mark.integration

PROGRAM = Path(__file__).with_name("async_program.py")


start = pytest.fixture(starting, name="start")


def python_of(version, module=None):
    path = find_python(version, module)
    if path is None:
        pytest.skip(f"no CPython {version} on this machine" + (f" with {module}" if module else ""))
    return path


def inner_pid(pid):
    """How a process sees itself."""
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(row.split()[-1]) for row in rows if row.startswith("NSpid"))


def check(truth, tasks):
    """Every task that the process knows was read, and no other; with its chain, and with what it awaits."""
    by_address = {t.address: t for t in tasks}
    for address, expected in truth.items():
        task = by_address[int(address)]
        assert task.name == expected["name"]
        chain = [[f.function, f.file, f.line] for f in task.chain]
        assert chain == [[function, short_file(file)[0], line] for function, file, line in expected["chain"]], task.name
        assert task.loop == expected["loop"], task.name
        assert task.stable is not False, task.name
        assert task.address not in task.awaited.tasks, task.name
        for field, value in (expected["awaited"] or {}).items():
            found = getattr(task.awaited, field)
            if field == "pid":
                found = inner_pid(found)
            assert (list(found) if isinstance(found, tuple) else found) == value, (task.name, task.awaited)
    others = [t for t in tasks if str(t.address) not in truth]
    assert [t.chain[-1].function for t in others] == ["main"]


@pytest.mark.parametrize("version", VERSIONS)
def test_chains_and_ends_equal_what_the_process_knows(version, start, tmp_path):
    python, path = python_of(version), tmp_path / "truth"
    child = start(python, PROGRAM, path, ready=path)
    tasks, gap = read_async_tasks(child.pid)
    assert gap is None
    truth = json.loads(path.read_text())
    check(truth, tasks)
    assert {t.address: t.tid for t in tasks if str(t.address) in truth} == {int(a): t["tid"] for a, t in truth.items()}


def test_sleep_tells_when_it_is_due(start, tmp_path):
    path = tmp_path / "truth"
    child = start(sys.executable, PROGRAM, path, ready=path)
    tasks, _ = read_async_tasks(child.pid)
    nap = next(t for t in tasks if t.name == "nap ☃").awaited
    assert 3600.5 - DEADLINE_S < nap.due_s < 3600.5


@pytest.mark.parametrize("version", [v for v in VERSIONS if v not in ("3.10",)])
def test_a_limit_of_its_own_tells_when_it_is_over(version, start, tmp_path):
    path = tmp_path / "truth"
    child = start(python_of(version), PROGRAM, path, ready=path)
    tasks, _ = read_async_tasks(child.pid)
    limits = {t.name: t.gives_up_s for t in tasks if t.gives_up_s is not None}
    waits_for = {"limits", "limits shielded"} if version not in ("3.11",) else set()  # wait_for sets one itself since 3.12
    assert set(limits) == {"has time"} | waits_for
    assert all(7200 - DEADLINE_S < left <= 7200 for left in limits.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_uvloop(version, start, tmp_path):
    path = tmp_path / "truth"
    child = start(python_of(version, "uvloop"), PROGRAM, path, "uvloop", ready=path)
    tasks, gap = read_async_tasks(child.pid)
    assert gap is None
    truth = json.loads(path.read_text())
    check(truth, tasks)
    assert {t.tid for t in tasks} == {t["tid"] for t in truth.values()}


def test_other_namespaces(start, tmp_path):
    """Threads have other ids inside; ours are told. The program's files are hidden from us by nothing being opened at all."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], check=False).returncode:
        pytest.skip("no right to make a PID namespace")
    path = tmp_path / "truth"
    child = start("unshare", "--pid", "--fork", "--mount-proc", sys.executable, PROGRAM, path, ready=path)
    inner = int(Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()[0])
    tasks, gap = read_async_tasks(inner)
    assert gap is None
    check(json.loads(path.read_text()), tasks)
    tids = {int(name) for name in os.listdir(f"/proc/{inner}/task")}
    assert all(t.tid in tids for t in tasks)
    assert len({t.tid for t in tasks}) == 2


def test_a_python_that_lies_where_we_cannot_see_it(start, tmp_path):
    """In a container the interpreter's path is another file outside, or none."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("no right to make a mount namespace")
    path, hidden = tmp_path / "truth", tmp_path / "only there"
    hidden.mkdir()
    script = 'mount --bind "$1" "$2" && exec "$2/bin/python3" "$3" "$4"'
    child = start("unshare", "--mount", "sh", "-c", script, "sh", sys.base_prefix, hidden, PROGRAM, path, ready=path)
    assert os.readlink(f"/proc/{child.pid}/exe").startswith(str(hidden)) and not (hidden / "bin").exists()
    tasks, gap = read_async_tasks(child.pid)
    assert gap is None
    check(json.loads(path.read_text()), tasks)


def test_two_reads_tell_what_stands_still(start, tmp_path):
    path = tmp_path / "ready"
    text = """
import asyncio, sys
async def polls():
    while True:
        await asyncio.sleep(0.05)
async def works(event):
    while True:
        await asyncio.sleep(0)
async def main():
    keep = [asyncio.create_task(polls(), name="polls"), asyncio.create_task(asyncio.Event().wait(), name="stuck")]
    keep.append(asyncio.create_task(asyncio.sleep(1000), name="sleeps"))
    await asyncio.sleep(0.1)
    open(sys.argv[1], "w").close()
    await asyncio.gather(*keep)
asyncio.run(main())
"""
    child = start(sys.executable, "-c", text, path, ready=path)
    earlier = read_all_async_tasks([child.pid])
    time.sleep(0.4)  # the window
    (process,), found_gaps = attach_async_tasks([Process(pid=child.pid, title="t")], earlier)
    assert found_gaps == []
    assert {t.name: t.stable for t in process.async_tasks} == {"Task-1": True, "polls": False, "stuck": True, "sleeps": True}


def test_what_was_not_read_in_time_before_the_window_is_read_after_it(start, tmp_path):
    path = tmp_path / "ready"
    text = """
import asyncio, sys
async def main():
    keep = asyncio.create_task(asyncio.Event().wait(), name="stuck")
    await asyncio.sleep(0)
    open(sys.argv[1], "w").close()
    await keep
asyncio.run(main())
"""
    child = start(sys.executable, "-c", text, path, ready=path)
    earlier = read_all_async_tasks([child.pid], total_s=1e-9)
    assert earlier[child.pid].tasks is None
    (process,), found_gaps = attach_async_tasks([Process(pid=child.pid, title="t")], earlier)
    assert found_gaps == []
    assert {t.name: t.stable for t in process.async_tasks} == {"Task-1": None, "stuck": None}


def test_blocked_loop(start, tmp_path):
    """One task runs a synchronous call; the others wait for their turn, and the sleep is overdue."""
    path = tmp_path / "ready"
    text = """
import asyncio, sys, time
async def blocks():
    open(sys.argv[1], "w").close()
    time.sleep(1000)
async def starts():
    await asyncio.sleep(0.01)
async def main():
    await asyncio.gather(asyncio.create_task(asyncio.sleep(0.01), name="late"), asyncio.create_task(blocks(), name="blocks"),
                         asyncio.create_task(starts(), name="new"))
asyncio.run(main())
"""
    child = start(sys.executable, "-c", text, path, ready=path)
    end = time.monotonic() + DEADLINE_S
    while True:
        tasks, gap = read_async_tasks(child.pid)
        found = {t.name: t for t in tasks}
        if found["late"].awaited.due_s < 0 or time.monotonic() > end:
            break
    assert gap is None
    assert found["blocks"].awaited.kind == "running"
    assert [f.function for f in found["blocks"].chain] == ["blocks"]
    assert found["new"].awaited.kind == "ready"
    assert found["late"].awaited.due_s < 0


def test_no_asyncio_and_no_python(start, tmp_path):
    ready = tmp_path / "ready"
    plain = start(sys.executable, "-c", "import sys, time; open(sys.argv[1], 'w').close(); time.sleep(1000)", ready, ready=ready)
    assert read_async_tasks(plain.pid) == ((), None)
    other = start("sleep", "1000")
    # in its sleep, not in the middle of exec, which has the new name already
    wait_for(lambda: Path(f"/proc/{other.pid}/stat").read_text().split(" ", 1)[1].startswith("(sleep) S"), "sleep does not start")
    assert read_async_tasks(other.pid) == (None, None)


def test_gone(start):
    child = start("true")
    child.wait()
    tasks, gap = read_async_tasks(child.pid)
    assert tasks is None
    assert gap.id == gaps.PROCESS_GONE
