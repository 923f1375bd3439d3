"""A process that was prepared shows its stacks where attaching is forbidden; one that was not is never sent a signal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.clusters import cluster, command, program, state_of, wait_for

from ray_rl_debug.collect.prepared import read_stacks
from ray_rl_debug.collect.procfs import read_stat
from ray_rl_debug.in_job.prepare import stack_file
from ray_rl_debug.model.codec import read_snapshot

pytestmark = pytest.mark.integration

PREPARED = """
import os, sys, threading, time
from ray_rl_debug.in_job import prepare
heavy = {"ray", "torch", "msgspec", "click", "numpy"} & set(sys.modules)
assert not heavy, heavy
prepare.open_doors()
prepare.open_doors()
def reward(): time.sleep(600)
threading.Thread(target=reward, daemon=True).start()
child = os.fork()
if child == 0:
    def generate(): time.sleep(600)
    print(os.getpid(), flush=True)
    generate()
def wait_for_child(): os.waitpid(child, 0)
wait_for_child()
"""
START_TOGETHER = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print("ready", flush=True)
signal.sigwait({signal.SIGUSR1})
"""
USES_SIGNAL_ITSELF = """
import signal, time
from ray_rl_debug.in_job import prepare
signal.signal(prepare.SIGNAL, lambda *_: None)
prepare.open_doors()
print("ready", flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def python(code: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stdout is not None
    try:
        yield child, child.stdout.readline().strip()
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait(10)
        child.stdout.close()


def own_folder() -> Path:
    folder = stack_file(1, 1, os.getuid()).parent
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def file_of(pid: int) -> Path:
    stat = read_stat(Path("/proc") / str(pid))
    assert stat is not None
    return stack_file(pid, stat.start_ticks, os.getuid())


def test_a_prepared_process_and_the_child_it_forks_write_their_own_stacks() -> None:
    with python(PREPARED) as (parent, announced):
        child = int(announced)
        found = {}
        for pid in (parent.pid, child):
            threads = read_stacks(pid)
            assert threads is not None
            found[pid] = [[function for function, _, _ in frames] for _, _, frames in threads]
            assert threads[0][0] == "MainThread"
            assert file_of(pid).stat().st_size == 0
            assert file_of(pid).stat().st_mode & 0o077 == 0
        assert found[parent.pid][0] == ["wait_for_child", "<module>"]
        assert found[parent.pid][1][0] == "reward"
        assert found[child] == [["generate", "<module>"]]
        assert state_of(parent.pid) == state_of(child) == "S"


def test_a_stopped_process_gets_no_signal_that_nobody_would_hear() -> None:
    with python(PREPARED) as (parent, _):
        parent.send_signal(signal.SIGSTOP)
        wait_for(lambda: state_of(parent.pid) == "T")
        assert read_stacks(parent.pid) is None
        parent.send_signal(signal.SIGCONT)
        assert file_of(parent.pid).stat().st_size == 0


def test_a_process_that_is_not_prepared_or_uses_the_signal_itself_is_left_alone() -> None:
    with python("import time; print('ready', flush=True); time.sleep(600)") as (plain, _), python(USES_SIGNAL_ITSELF) as (own, _):
        assert read_stacks(plain.pid) is None
        assert read_stacks(own.pid) is None
        assert not file_of(own.pid).exists()
        assert (plain.poll(), own.poll()) == (None, None)


def test_files_left_behind_are_removed_and_one_that_is_held_in_another_container_stays(tmp_path: Path) -> None:
    folder = own_folder()
    left_behind, held, vanishes = (folder / f"{2**30 + i}-1.stacks" for i in range(3))
    left_behind.write_text("a dump cut short")
    vanishes.symlink_to(tmp_path / "removed by another worker meanwhile")
    try:
        with held.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            with python(PREPARED) as (parent, announced):
                assert [path.exists() for path in (left_behind, held)] == [False, True]
                assert [file_of(pid).exists() for pid in (parent.pid, int(announced))] == [True, True]
    finally:
        held.unlink()
        vanishes.unlink()


def test_many_that_start_at_once_and_clean_the_same_folder_all_open_their_doors() -> None:
    folder = own_folder()
    for i in range(500):
        (folder / f"{2**30 + i}-1.stacks").touch()
    code = START_TOGETHER + PREPARED
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(python(code))[0] for _ in range(8)]
        for child in children:
            child.send_signal(signal.SIGUSR1)
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
            assert read_stacks(child.pid) is not None
    assert not list(folder.glob(f"{2**30}-*"))


def test_workers_with_the_hook_are_seen_from_a_user_namespace_of_our_own(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-Ur", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel or container does not allow unshare -Ur")
    with cluster(1) as c, program("job_program.py", c["address"], "Stage", 2, "ray_rl_debug.prepare.open_doors") as job:
        done = command("snapshot", "--here", "--address", c["address"], "-o", tmp_path, prefix=("unshare", "-Ur"))
        assert done.returncode in (1, 3), done.stderr
        (node,) = read_snapshot(tmp_path / "snapshot.json.gz").nodes
        seen = {p.pid: p for p in node.processes}
        for pid in job["pids"]:
            assert {s.source for s in seen[pid].samples} == {"faulthandler"}
            innermost = node.frames[node.stacks[seen[pid].samples[0].threads[0].stack][0]]
            assert innermost.function.rpartition(".")[2] == "train"
            assert state_of(pid) == "S"
