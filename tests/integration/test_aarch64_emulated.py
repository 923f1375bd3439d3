"""Coroutines of real CPythons for aarch64 below qemu-user, read from outside by our own reader.

qemu-user maps the files and the memory of the program at the addresses that it sees, so ``/proc/PID/maps`` and ``/proc/PID/mem`` are as on such a
machine. What the kernel itself tells there (system calls, states, sockets) is that of the machine below and cannot be tried so.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from integration.test_async_tasks_real import check
from programs import starting

from ray_rl_debug.collect.async_tasks import read_async_tasks
from ray_rl_debug.collect.async_tasks.elf import EM_AARCH64, find_python
from ray_rl_debug.collect.async_tasks.memory import Memory, ProcessSource
from ray_rl_debug.collect.async_tasks.runtime import GLIBC_TID

pytestmark = pytest.mark.integration

FOLDER = os.environ.get("RAYRL_DEBUG_AARCH64", "")
PROGRAM = Path(__file__).with_name("async_program.py")
THREAD_ID = """
import ctypes, sys, threading
libc = ctypes.CDLL(None)
libc.pthread_self.restype = ctypes.c_ulong
found = []
def look():
    found.append(ctypes.c_int.from_address(libc.pthread_self() + int(sys.argv[1])).value == threading.get_native_id())
look()
thread = threading.Thread(target=look)
thread.start()
thread.join()
print(found)
"""
start = pytest.fixture(starting, name="start")


@pytest.fixture(params=["3.11", "3.13", "3.14"])
def python(request: pytest.FixtureRequest) -> list[str]:
    """The command of an emulated Python."""
    root = Path(FOLDER, f"python{request.param}")
    if not FOLDER or not root.is_dir():
        pytest.skip("set RAYRL_DEBUG_AARCH64 to a folder that tests/integration/get_aarch64.sh made")
    return [str(Path(FOLDER, "qemu", "usr", "bin", "qemu-aarch64")), "-L", str(root), str(root / "usr" / "bin" / f"python{request.param}")]


def test_chains_and_ends_equal_what_the_process_knows(python: list[str], start: Any, tmp_path: Path) -> None:
    path = tmp_path / "truth"
    child = start(*python, PROGRAM, path, ready=path)
    tasks, gap = read_async_tasks(child.pid, deadline_s=20)
    assert gap is None
    assert tasks is not None
    truth = json.loads(path.read_text())
    check(truth, tasks)
    assert {t.address: t.tid for t in tasks if str(t.address) in truth} == {int(a): t["tid"] for a, t in truth.items()}
    source = ProcessSource(child.pid)
    image = find_python(Memory(source, float("inf")))
    source.close()
    assert image is not None
    assert image.machine == EM_AARCH64


def test_where_glibc_keeps_the_id_of_a_thread(python: list[str]) -> None:
    done = subprocess.run([*python, "-c", THREAD_ID, str(GLIBC_TID[EM_AARCH64])], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "[True, True]", done.stderr
