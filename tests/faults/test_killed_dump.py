"""Our own processes are killed while they look at a target: the target goes on, and nothing of ours stays."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import MARK, marked, started, troubles, wait_for

from ray_rl_debug.collect.pyspy import find_pyspy

pytestmark = pytest.mark.integration

LATEST_S = 2.0
"""After this long nothing may be stopped, traced or orphaned."""

TARGET = """
import threading, time
def nap():
    while True: time.sleep(0.001)
for _ in range(60):
    threading.Thread(target=nap, daemon=True).start()
print("ready", flush=True)
while True: sum(range(1000))
"""
LOOKER = """
import sys
from types import SimpleNamespace
from ray_rl_debug.collect.stacks import StackSampler, Target
pyspy, pid, native, pystack = sys.argv[1], int(sys.argv[2]), "native" in sys.argv, "pystack" in sys.argv
options = SimpleNamespace(native=native, pystack=pystack, timeout_s=4.0)
print("ready", flush=True)
for line in sys.stdin:
    sampler = StackSampler(options, pyspy)
    sampler.sample([Target(pid=pid, state="R")], 0.0)
    stacks = sampler.finish()
    print(len(stacks.samples.get(pid, ())), [(g.what, g.reason) for g in stacks.gaps], flush=True)
"""


@pytest.fixture
def target() -> Iterator[int]:
    with started(TARGET) as pid:
        yield pid


KINDS = {"py-spy": "/py-spy dump", "pystack": "/pystack remote", "supervisor": "/supervisor.py"}


def kinds_of(commands: dict[int, str]) -> dict[str, int]:
    """Our processes by what they are."""
    return {kind: pid for pid, command in commands.items() for kind, part in KINDS.items() if part in command}


class Looker:
    """A process of ours that makes a dump each time it is told to."""

    def __init__(self, target: int, *how: str) -> None:
        self.mark = uuid.uuid4().hex
        command = [sys.executable, "-c", LOOKER, find_pyspy() or "", str(target), *how]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, MARK: self.mark})
        assert self._read() == b"ready\n"

    def begin(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(b"\n")
        self.child.stdin.flush()

    def is_ready(self) -> bool:
        return bool(select.select([self.child.stdout], [], [], 0)[0])

    def answer(self) -> str:
        return self._read().decode()

    def _read(self) -> bytes:
        assert self.child.stdout is not None
        return self.child.stdout.readline()

    def processes_with(self, kind: str) -> dict[str, int] | None:
        """Our processes by what they are, when there is one of this kind."""
        found = {"caller": self.child.pid, **kinds_of(marked(self.mark))}
        return found if kind in found else None

    def end(self) -> None:
        self.child.kill()
        self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def kill_at_random(target: int, kills: int, seed: int, *how: str, number: int = signal.SIGKILL) -> Counter[str]:
    """Kill our processes in turn at random moments of a dump; how many of each died in the middle of one."""
    chance, died = random.Random(seed), Counter[str]()
    looker = Looker(target, *how)
    victims = ("caller", "supervisor", "pystack" if "pystack" in how else "py-spy")
    try:
        while sum(died.values()) < kills:
            victim = victims[sum(died.values()) % 3]
            looker.begin()
            running = wait_for(lambda now=looker: now.processes_with(victims[2]) or now.is_ready(), "no dump begins")
            time.sleep(chance.random() * 0.06)
            try:
                os.kill(running[victim] if isinstance(running, dict) else 1 << 30, number)
            except ProcessLookupError:
                looker.answer()  # it was ready sooner
                continue
            if victim == "caller":
                looker.child.wait()
                ours = looker.mark
                wait_for(lambda ours=ours: not marked(ours) and not troubles(target), f"{seed}: {marked(ours)} {troubles(target)}", LATEST_S)
                looker.end()
                looker = Looker(target, *how)
            else:
                assert looker.answer(), "the caller died too"
                wait_for(lambda: not troubles(target), f"{seed}: {victim} was killed: {troubles(target)}", LATEST_S)
            died[victim] += 1
    finally:
        looker.end()
    wait_for(lambda: not marked(looker.mark) and not troubles(target), f"left behind: {marked(looker.mark)} {troubles(target)}", LATEST_S)
    return died


def test_killed_at_random(target: int) -> None:
    """The caller, its supervisor or py-spy gets SIGKILL at a random moment of a blocking dump.

    Two seconds later the target runs untraced, and no process of ours is left; where the caller lives, it answers.
    """
    assert kill_at_random(target, 21, random.randrange(1 << 30)) == {"caller": 7, "supervisor": 7, "py-spy": 7}


def test_killed_at_random_with_native_frames(target: int) -> None:
    """The same in dumps with C++ frames, which hold the target longer.

    Two seconds later the target runs untraced, and no process of ours is left.
    """
    assert sum(kill_at_random(target, 6, random.randrange(1 << 30), "native").values()) == 6


def test_killed_at_random_with_pystack(target: int) -> None:
    """The same while pystack reads the target.

    Two seconds later the target runs untraced, and no process of ours is left.
    """
    assert sum(kill_at_random(target, 6, random.randrange(1 << 30), "pystack").values()) == 6


def test_asked_to_end(target: int) -> None:
    """The caller, its supervisor or py-spy gets SIGTERM in the middle of a blocking dump.

    Two seconds later the target runs untraced, and no process of ours is left.
    """
    assert sum(kill_at_random(target, 6, random.randrange(1 << 30), number=signal.SIGTERM).values()) == 6


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_two_hundred_times(target: int) -> None:
    """Two hundred times SIGKILL, 132 with Python frames, 68 with C++ frames too.

    Two seconds after each the target runs untraced, and no process of ours is left.
    """
    seed = random.randrange(1 << 30)
    died = kill_at_random(target, 132, seed) + kill_at_random(target, 68, seed, "native")
    print(f"seed {seed}: {dict(died)}")
    assert sum(died.values()) == 200


SLEEPER = """
import os, sys, threading, time
for _ in range(3):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("ready", flush=True)
# posix_spawn keeps its thread in state D until the child executes a program; opening a FIFO as an action holds the child before that.
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 9, sys.argv[1], os.O_RDONLY, 0)])
print("awake", flush=True)
time.sleep(600)
"""
HANGS = """
import sys
from ray_rl_debug.bounded.programs import Traced, run_bounded
from ray_rl_debug.bounded.supervisor import start_ticks
pid = int(sys.argv[2])
run_bounded([sys.argv[1], "dump", "--pid", str(pid)], 300, traced=Traced(pid=pid, ticks=start_ticks(pid)))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("victim", ["caller", "supervisor", "py-spy"])
def test_a_dump_that_hangs(victim: str, number: int, tmp_path: Path) -> None:
    """A thread in state D holds a blocking dump for ever, with the other threads stopped, when one of our processes is killed.

    Two seconds later the target is free, and it goes on when that thread wakes.
    """
    fifo, mark = tmp_path / "fifo", uuid.uuid4().hex
    os.mkfifo(fifo)
    target = subprocess.Popen([sys.executable, "-c", SLEEPER, str(fifo)], stdout=subprocess.PIPE)
    caller = None
    try:
        assert target.stdout is not None
        assert target.stdout.readline() == b"ready\n"
        wait_for(lambda: Path(f"/proc/{target.pid}/stat").read_text().rpartition(")")[2].split()[0] == "D", "it does not come to state D")
        caller = subprocess.Popen([sys.executable, "-c", HANGS, find_pyspy() or "", str(target.pid)], env={**os.environ, MARK: mark})
        wait_for(lambda: troubles(target.pid), "py-spy does not begin")
        os.kill({"caller": caller.pid, **kinds_of(marked(mark))}[victim], number)
        wait_for(lambda: not marked(mark) and not troubles(target.pid), f"{marked(mark)} {troubles(target.pid)}", LATEST_S)
        os.close(os.open(fifo, os.O_WRONLY))
        assert target.stdout.readline() == b"awake\n"
        assert not troubles(target.pid)
    finally:
        for child in filter(None, (target, caller)):
            child.kill()
            child.wait()


def test_the_pipe_is_held_by_a_fork(target: int, tmp_path: Path) -> None:
    """The caller forked a child that keeps its pipes open, then gets SIGKILL in the middle of a dump.

    The supervisor sees its new parent instead: two seconds later only that child is left.
    """
    program = (
        "import os, sys, threading, time\n"
        "from ray_rl_debug.bounded.programs import Supervisors\n"
        "supervisors = Supervisors()\n"
        "supervisors.run(['true'], 5)\n"
        "if os.fork() == 0:\n"
        "    print('forked', os.getpid(), flush=True)\n"
        "    time.sleep(600)\n"
        "supervisors.run(['sleep', '600'], 300)\n"
    )
    mark = uuid.uuid4().hex
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env={**os.environ, MARK: mark})
    assert child.stdout is not None
    heir = int(child.stdout.readline().split()[1])
    try:
        wait_for(lambda: [c for c in marked(mark).values() if c.startswith("sleep ")], "no child")
        child.kill()
        child.wait()
        wait_for(lambda: set(marked(mark)) == {heir}, f"left behind: {marked(mark)}", LATEST_S)
    finally:
        os.kill(heir, signal.SIGKILL)
        child.stdout.close()


def test_killed_while_ray_tells_its_timeline(tmp_path: Path) -> None:
    """The caller of Ray's own timeline gets SIGKILL while the cluster does not answer.

    Two seconds later no process of ours is left, and no folder.
    """
    program = "import sys\nfrom ray_rl_debug.timeline.ray_export import export\nexport(sys.argv[1])"
    mark = uuid.uuid4().hex
    with socket.create_server(("", 0)) as silent:  # Ray goes to this machine's own address
        argv = [sys.executable, "-c", program, f"127.0.0.1:{silent.getsockname()[1]}"]
        caller = subprocess.Popen(argv, env={**os.environ, MARK: mark, "TMPDIR": str(tmp_path)}, stderr=subprocess.DEVNULL)
        try:
            silent.settimeout(60.0)
            silent.accept()[0].close()  # Ray has come to the cluster
        finally:
            caller.kill()
            caller.wait()
        wait_for(lambda: not marked(mark), f"left behind: {marked(mark)}", LATEST_S)
    assert not list(tmp_path.glob("rayrl*"))


def test_what_others_stopped_stays_stopped(target: int) -> None:
    """Somebody stops the target while we are about to look; then our py-spy is killed.

    The stop is theirs: the target stays stopped.
    """
    from ray_rl_debug.bounded.programs import Traced, run_bounded
    from ray_rl_debug.bounded.supervisor import start_ticks

    os.kill(target, signal.SIGSTOP)
    wait_for(lambda: troubles(target), "it does not stop")
    done = run_bounded(["sleep", "600"], 0.3, traced=Traced(pid=target, ticks=start_ticks(target)))
    assert (done.timed_out, done.continued) == (True, False)
    assert troubles(target)
    os.kill(target, signal.SIGCONT)
    wait_for(lambda: not troubles(target), "it does not go on")


def test_another_process_has_the_number(target: int) -> None:
    """The target ends in the middle of a dump, and a stopped process of somebody else has its number.

    A process with another start is not continued.
    """
    from ray_rl_debug.bounded.supervisor import release, start_ticks

    ticks = start_ticks(target)
    assert ticks is not None
    os.kill(target, signal.SIGSTOP)
    wait_for(lambda: troubles(target), "it does not stop")
    assert release(target, ticks - 1) is False
    assert troubles(target)
    assert release(target, ticks) is True
    wait_for(lambda: not troubles(target), "it does not go on")


def test_a_supervisor_that_is_stopped(tmp_path: Path) -> None:
    """Somebody stops the supervisor: its deadline does not come.

    The caller has one of its own, ends it with what it started, and says that nothing was read.
    """
    from ray_rl_debug.bounded import programs

    supervisors = programs.Supervisors()
    assert supervisors.run(["true"], 5).code == 0
    mark = uuid.uuid4().hex
    (one,) = supervisors._idle
    os.kill(one._child.pid, signal.SIGSTOP)
    before, programs.START_S = programs.START_S, 0.1
    try:
        done = supervisors.run(["sleep", "600"], 0.2, env={**os.environ, MARK: mark})
    finally:
        programs.START_S = before
        supervisors.close()
    assert (done.code, done.timed_out, done.died) == (None, True, True)
    assert marked(mark) == {}
