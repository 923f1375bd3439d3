"""System calls are read by name: the same number means different calls on different machines."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.collect.procfs import finish_threads, read_threads
from ray_rl_debug.model.snapshot import Thread
from ray_rl_debug.model.system_calls import call_name


@pytest.mark.parametrize(("number", "x86_64", "aarch64"), [(73, "flock", "ppoll"), (63, None, "read"), (202, "futex", "accept"), (98, None, "futex")])
def test_a_number_means_another_call_on_another_machine(number: int, x86_64: str | None, aarch64: str | None) -> None:
    assert (call_name(number, "x86_64"), call_name(number, "aarch64")) == (x86_64, aarch64)
    assert call_name(number, "riscv64") is None


def test_the_name_decides_and_old_snapshots_mean_x86_64() -> None:
    grace = Thread(tid=1, comm="python", state="S", syscall=73, call="ppoll")
    assert kernel_call(grace) == "poll"
    assert kernel_call(Thread(tid=1, comm="python", state="S", syscall=73)) == "flock"


def test_a_thread_that_reads_a_pipe_is_read_by_name() -> None:
    reader, writer = os.pipe()
    thread = threading.Thread(target=os.read, args=(reader, 1), daemon=True)
    thread.start()
    task = Path(f"/proc/self/task/{thread.native_id}/syscall")
    while not task.read_text().startswith(("0 ", "63 ")):
        assert thread.is_alive()
    clocks = read_threads(os.getpid())
    seen = {t.tid: t for t in finish_threads(os.getpid(), clocks, clocks, 0.01)}
    os.write(writer, b"x")
    assert thread.native_id is not None
    found = seen[thread.native_id]
    assert found.call == "read" if platform.machine() in ("x86_64", "aarch64") else found.call is None
    assert found.syscall_arg0 == reader


@pytest.mark.parametrize(("first", "wanted"), [(0, "sleep"), (5, "poll"), (None, "poll")])
def test_a_select_of_no_descriptor_is_a_sleep(first: int | None, wanted: str) -> None:
    """time.sleep of Python 3.10 is pselect6(0, NULL, ...)."""
    sleeping = Thread(tid=1, comm="python", state="S", wchan="poll_schedule_timeout", call="pselect6", syscall_arg0=first)
    assert kernel_call(sleeping) == wanted


def test_who_waits_for_any_child_says_so_by_its_number() -> None:
    """It is not the same as a number that was not read."""
    program = "import os, subprocess; subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL); print(1, flush=True); os.wait()"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        task, deadline = Path(f"/proc/{parent.pid}/wchan"), time.monotonic() + 20
        while task.read_text() != "do_wait" and time.monotonic() < deadline:
            time.sleep(0.01)
        clocks = read_threads(parent.pid)
        found = finish_threads(parent.pid, clocks, clocks, 0.01)
        os.killpg(parent.pid, signal.SIGKILL)
    assert [(t.call, t.syscall_arg0) for t in found] == [("wait4", -1)]
