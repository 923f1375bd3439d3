"""Who holds the other end of the descriptor that is waited for: pools, pipes, queues, Unix sockets, eventfds and shared memory of live processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ray_rl_debug.collect.node import collect_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.model.snapshot import Node, Process

pytestmark = pytest.mark.integration

POOL = """
import multiprocessing as mp, os, sys, time
if __name__ == "__main__":
    pool = mp.get_context(sys.argv[1]).Pool(2)
    pool.map(abs, range(4))
    result = pool.apply_async(time.sleep, (600,))
    print(*[p.pid for p in pool._pool], flush=True)
    result.get()
"""
QUEUE = """
import multiprocessing as mp, sys
def take(queue, ready):
    ready.send(1)
    queue.get()
if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    queue = context.Queue()
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=take, args=(queue, there))
    child.start()
    here.recv()
    print(child.pid, flush=True)
    child.join()
"""
PIPE = """
import multiprocessing as mp, sys
def answer(connection):
    connection.send(1)
    connection.recv()
if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    here, there = context.Pipe()
    child = context.Process(target=answer, args=(there,))
    child.start()
    there.close()
    here.recv()
    print(child.pid, flush=True)
    here.recv()
"""
UNIX = """
import os, socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
child = os.fork()
if not child:
    server.close()
    client = socket.socket(socket.AF_UNIX)
    client.connect(sys.argv[1])
    client.recv(1)
connection, _ = server.accept()
print(child, flush=True)
time.sleep(600)
"""
MEMORY = """
import multiprocessing as mp, os, sys, time
from multiprocessing.shared_memory import SharedMemory
def attach(name, ready):
    segment = SharedMemory(name)
    ready.send(os.getpid())
    time.sleep(600)
if __name__ == "__main__":
    context = mp.get_context("spawn")
    segment = SharedMemory(create=True, size=4096)
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=attach, args=(segment.name, there))
    child.start()
    here.recv()
    if sys.argv[1] == "unlinked":
        segment.unlink()
    print(child.pid, segment.name, flush=True)
    time.sleep(600)
"""
EVENTFD = """
import os, time
fd, other = os.eventfd(0), os.eventfd(0)
child = os.fork()
if not child:
    os.close(other)
    os.eventfd_read(fd)
print(child, fd, other, flush=True)
time.sleep(600)
"""


@pytest.fixture
def started() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def start(stack: ExitStack, code: str, folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """A program that runs from a file (spawn imports it again), and the words that it printed when it was ready."""
    program = folder / "program.py"
    program.write_text(code)
    argv = [sys.executable, str(program), *arguments]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)
    stack.callback(_end, child)
    assert child.stdout is not None
    return child.pid, child.stdout.readline().split()


def _end(child: subprocess.Popen[str]) -> None:
    # the resource tracker lives through SIGTERM, and removes what the others leave in /dev/shm
    os.killpg(child.pid, signal.SIGTERM)
    child.wait(10)
    if child.stdout is not None:
        child.stdout.close()


def collect_until(pid: int, condition: Callable[[Node], bool]) -> Node:
    """Facts of a program; they come to what is asked for as soon as all its processes sleep."""
    deadline = time.monotonic() + 30
    while True:
        node = collect_node(CollectOptions(pids=(pid,), samples=1, async_tasks=False, logs=False))
        if condition(node) or time.monotonic() > deadline:
            return node


def of(node: Node, pid: int) -> Process:
    return next(p for p in node.processes if p.pid == pid)


def waits(node: Node, pid: int) -> tuple[int, ...] | None:
    return next(t for t in of(node, pid).threads if t.tid == pid).waits_on_fds


def other_ends(node: Node, pid: int) -> set[int]:
    """Processes that hold the other end of what the main thread of `pid` waits for."""
    found = set()
    for fd in waits(node, pid) or ():
        mine = next((f for f in of(node, pid).files or () if f.fd == fd), None)
        socket = next((s for s in of(node, pid).sockets or () if s.fd == fd), None)
        for other in node.processes:
            if mine is not None and any(f.inode == mine.inode and f.writable is not mine.writable for f in other.files or ()):
                found.add(other.pid)
            if socket is not None and any(s.inode == socket.peer_inode for s in other.sockets or ()):
                found.add(other.pid)
    return found


def segments(node: Node, pid: int, kind: str) -> set[tuple[str | None, int | None]]:
    return {(f.device, f.inode) for f in of(node, pid).files or () if f.path.startswith(f"/dev/shm/{kind}")}


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_an_idle_pool_worker_reads_what_only_its_server_writes(started: ExitStack, tmp_path: Path, method: str) -> None:
    pid, words = start(started, POOL, tmp_path, method)
    workers = [int(w) for w in words]
    node = collect_until(pid, lambda n: any(waits(n, w) for w in workers))
    idle = [w for w in workers if waits(node, w)]
    assert len(idle) == 1, "one sleeps in its task, the other reads"
    assert other_ends(node, idle[0]) == {pid}
    locks = segments(node, pid, "sem.")
    assert locks and all(segments(node, w, "sem.") & locks for w in workers)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_reader_of_a_queue_waits_for_those_who_can_put(started: ExitStack, tmp_path: Path, method: str) -> None:
    pid, words = start(started, QUEUE, tmp_path, method)
    child = int(words[0])
    node = collect_until(pid, lambda n: bool(waits(n, child)))
    assert pid in other_ends(node, child)
    assert segments(node, pid, "sem.") & segments(node, child, "sem.")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_both_ends_of_a_duplex_pipe_wait_for_each_other(started: ExitStack, tmp_path: Path, method: str) -> None:
    pid, words = start(started, PIPE, tmp_path, method)
    child = int(words[0])
    node = collect_until(pid, lambda n: bool(waits(n, child) and waits(n, pid)))
    assert other_ends(node, pid) == {child}
    assert pid in other_ends(node, child)


def test_the_two_ends_of_a_unix_connection_are_paired(started: ExitStack, tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    pid, words = start(started, UNIX, tmp_path, path)
    child = int(words[0])
    node = collect_until(pid, lambda n: bool(waits(n, child)))
    assert other_ends(node, child) == {pid}
    end = next(s for s in of(node, child).sockets or () if s.fd in (waits(node, child) or ()))
    assert (end.remote, end.state) == (path, "ESTABLISHED")


@pytest.mark.parametrize("state", ["named", "unlinked"])
def test_a_segment_of_shared_memory_is_the_same_file_in_both(started: ExitStack, tmp_path: Path, state: str) -> None:
    pid, (child, name) = start(started, MEMORY, tmp_path, state)
    node = collect_until(pid, lambda n: True)
    assert segments(node, pid, name) == segments(node, int(child), name) != set()
    paths = {f.path for p in (pid, int(child)) for f in of(node, p).files or () if name in f.path}
    assert paths == {f"/dev/shm/{name}" + (" (deleted)" if state == "unlinked" else "")}


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="os.eventfd came with Python 3.10 on Linux")
def test_an_eventfd_tells_who_else_has_it(started: ExitStack, tmp_path: Path) -> None:
    pid, words = start(started, EVENTFD, tmp_path)
    child, fd, other = (int(w) for w in words)
    node = collect_until(pid, lambda n: waits(n, child) == (fd,))
    named = {p: {f.fd: f.path for f in of(node, p).files or () if f.kind == "eventfd"} for p in (pid, child)}
    assert named[child][fd] == named[pid][fd] != named[pid][other]
    assert other not in named[child]
