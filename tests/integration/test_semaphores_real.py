"""Who holds the semaphores of multiprocessing that others wait for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from programs import starting, wait_for

from ray_rl_debug.collect.files import FileReader
from ray_rl_debug.collect.semaphores import read_semaphores
from ray_rl_debug.model.snapshot import Process, SemaphoreUse, SharedSemaphore, Thread

pytestmark = pytest.mark.integration

PROGRAM = """
import multiprocessing as mp, os, sys, time

def hold(slots, ready):
    slots.acquire()
    ready.put(("holder", os.getpid()))
    if sys.argv[2] == "dies":
        time.sleep(0.2)  # until the queue has passed it on
        os._exit(1)
    time.sleep(600)

def wait(slots, ready):
    ready.put(("waiter", os.getpid()))
    slots.acquire()

if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    slots, ready = context.Lock(), context.Queue()
    told = []
    for target in (hold, wait):
        context.Process(target=target, args=(slots, ready)).start()
        told.append(ready.get())
    print(*(pid for _, pid in told), flush=True)
    time.sleep(600)
"""


@pytest.fixture
def start() -> Iterator:
    yield from starting()


def run(start, tmp_path: Path, *how: str) -> tuple[int, int, int]:
    """The program's own process, the holder and the waiter."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    child = start(sys.executable, program, *how, stdout=subprocess.PIPE, text=True)
    holder, waiter = map(int, child.stdout.readline().split())
    wait_for(lambda: "futex" in Path(f"/proc/{waiter}/wchan").read_text(), "the waiter waits")
    return child.pid, holder, waiter


def seen(*pids: int) -> list[Process]:
    """As the collector would hand them over."""
    files = FileReader()
    return [
        Process(pid=p.pid, title="", files=files.read(p.pid), threads=tuple(Thread(tid=t.id, comm="", state="S") for t in p.threads()))
        for p in map(psutil.Process, pids)
    ]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_holder_of_a_lock_is_told(start, tmp_path: Path, method: str) -> None:
    main, holder, waiter = run(start, tmp_path, method, "stays")
    (found,) = read_semaphores(seen(main, holder, waiter), total_s=30)
    taken = SemaphoreUse(pid=holder, taken=1, tid=holder)
    assert found == SharedSemaphore(inode=found.inode, waiters=((waiter, waiter),), value=0, maximum=1, uses=(taken,))


def test_a_lock_whose_holder_has_died_is_held_by_nobody(start, tmp_path: Path) -> None:
    main, holder, waiter = run(start, tmp_path, "fork", "dies")
    wait_for(lambda: psutil.Process(holder).status() == psutil.STATUS_ZOMBIE, "the holder ends")
    (found,) = read_semaphores(seen(main, waiter), total_s=30)
    assert (found.value, found.maximum, found.uses, found.unread) == (0, 1, (), ())


def test_nothing_is_read_where_nobody_waits(start, tmp_path: Path) -> None:
    main, holder, _ = run(start, tmp_path, "fork", "stays")
    assert read_semaphores(seen(main, holder), total_s=30) == ()


def test_without_time_the_counts_are_not_known(start, tmp_path: Path) -> None:
    _, holder, waiter = run(start, tmp_path, "fork", "stays")
    (found,) = read_semaphores(seen(holder, waiter), total_s=0)
    assert (found.uses, set(found.unread), found.value) == ((), {holder, waiter}, 0)
