"""The descriptors that live processes wait for, before and after py-spy looked at them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ray_rl_debug.collect.node import collect_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.collect.waited_fds import read_waited_fds
from ray_rl_debug.model.snapshot import Process

pytestmark = pytest.mark.integration

SENTINEL = """
import multiprocessing as mp, time
from multiprocessing.connection import wait
if __name__ == "__main__":
    child = mp.get_context("fork").Process(target=time.sleep, args=(600,))
    child.start()
    ours, theirs = mp.Pipe()
    print(ours.fileno(), child.sentinel, flush=True)
    wait([ours, child.sentinel], timeout=600)
"""
PROGRAMS = {
    "connection.poll": "import multiprocessing as mp; a, b = mp.Pipe(); print(a.fileno(), flush=True); a.poll(600)",
    "connection.wait": SENTINEL,
    "select": (
        "import os, select; r, w = os.pipe(); s, t = os.pipe(); os.dup2(r, 700); print(700, s, flush=True); select.select([700, s], [], [], 600)"
    ),
    "epoll": (
        "import os, select; r, w = os.pipe(); s, t = os.pipe(); e = select.epoll(); e.register(r, select.EPOLLIN); e.register(s, select.EPOLLIN);"
        " print(r, s, flush=True); e.poll(600)"
    ),
    "read": "import os; r, w = os.pipe(); print(r, flush=True); os.read(r, 1)",
    "recv": "import socket; a, b = socket.socketpair(); print(a.fileno(), flush=True); a.recv(1)",
    "accept": "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.fileno(), flush=True); s.accept()",
    "a lock": "import threading; l = threading.Lock(); l.acquire(); print(flush=True); l.acquire()",
}


@pytest.fixture
def started() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def start(stack: ExitStack, code: str) -> tuple[int, tuple[int, ...]]:
    """A program that sleeps in its last call, and the descriptors that it said it would wait for."""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    stack.callback(_end, child)
    assert child.stdout is not None
    fds = tuple(sorted(map(int, child.stdout.readline().split())))
    deadline = time.monotonic() + 20
    while not _sleeps(child.pid):
        assert time.monotonic() < deadline, "it never slept in its call"
        time.sleep(0.01)
    return child.pid, fds


def _sleeps(pid: int) -> bool:
    """Twice in the same call: the program has nothing else to do than to wait in it."""
    texts = []
    for _ in range(2):
        texts.append(Path(f"/proc/{pid}/syscall").read_text())
        time.sleep(0.05)
    return texts[0] == texts[1] and not texts[0].startswith("running")


def _end(child: subprocess.Popen[str]) -> None:
    os.killpg(child.pid, 9)
    child.wait(10)
    if child.stdout is not None:
        child.stdout.close()


def snapshot(pid: int) -> Process:
    node = collect_node(CollectOptions(pids=(pid,), samples=1, async_tasks=False, logs=False))
    return next(p for p in node.processes if p.pid == pid)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "a lock"])
def test_a_call_that_waits_for_descriptors_names_them(started: ExitStack, name: str) -> None:
    pid, fds = start(started, PROGRAMS[name])
    assert fds
    assert read_waited_fds(pid, [pid]) == {pid: fds}
    process = snapshot(pid)  # py-spy has interrupted the call by then
    assert process.samples
    assert next(t for t in process.threads if t.tid == pid).waits_on_fds == fds


def test_a_lock_is_no_descriptor(started: ExitStack) -> None:
    pid, _ = start(started, PROGRAMS["a lock"])
    assert read_waited_fds(pid, [pid]) == {}
    assert next(t for t in snapshot(pid).threads if t.tid == pid).waits_on_fds is None


def test_a_poll_that_was_interrupted_keeps_the_name_of_its_channel(started: ExitStack) -> None:
    pid, fds = start(started, PROGRAMS["connection.poll"])
    snapshot(pid)
    thread = next(t for t in snapshot(pid).threads if t.tid == pid)
    assert (thread.wchan, thread.waits_on_fds) == ("poll_schedule_timeout", fds)


def test_a_process_that_is_gone_has_no_answer() -> None:
    assert read_waited_fds(2**22 + 1, [2**22 + 1]) == {}
