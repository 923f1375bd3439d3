"""py-spy on real processes: what is seen, and that no target is ever left stopped."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ray_rl_debug.collect.pyspy import find_pyspy, read_status
from ray_rl_debug.collect.stacks import StackSampler, Target
from ray_rl_debug.model import gaps

pytestmark = pytest.mark.integration

DEADLINE_S = 30

BUSY = "ready()\nsecret = 'hunter2'\nwhile True: sum(range(1000))"
SLEEPING = "import time\ndef nap(secret='hunter2'):\n    time.sleep(600)\nready()\nnap()"
JOINING = """
import threading, time
helper = threading.Thread(target=time.sleep, args=(600,), name="rollout-7")
helper.start()
ready()
helper.join()
"""
ENDS = "ready()"
VFORK_PARENT = """
import ctypes, os
libc = ctypes.CDLL(None)
read_end, write_end = os.pipe()
os.set_inheritable(read_end, True)
ready(write_end)
# posix_spawn keeps the parent in state D until the child executes a program; opening a FIFO as an action holds the child before that.
fifo = os.environ["FIFO"]
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 9, fifo, os.O_RDONLY, 0)])
open(os.environ["READY"] + ".after", "w").close()
import time
time.sleep(600)
"""


def options(**changes):
    return SimpleNamespace(**{"samples": 2, "interval_s": 0.1, "native": False, "pystack": False, "timeout_s": 4.0, "pyspy": None, **changes})


def wait_for(condition, what):
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def state(pid):
    return (read_status(pid) or {}).get("State", "X")[0]


@pytest.fixture
def start(tmp_path):
    children = []

    def run(text, name="target", **env):
        ready = tmp_path / f"{name}.ready"
        head = f"import os\ndef ready(*_): open({str(ready)!r}, 'w').close()\n"
        script = tmp_path / f"{name}.py"
        script.write_text(head + text)
        children.append(subprocess.Popen([sys.executable, script], env={**os.environ, "READY": str(ready), **env}, start_new_session=True))
        wait_for(ready.exists, f"{name} does not start")
        return children[-1]

    yield run
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def look(*pids, rounds=1, at=None, **changes):
    sampler = StackSampler(options(**changes), find_pyspy())
    for number in range(rounds):
        sampler.sample([Target(pid=pid, state=state(pid)) for pid in pids], float(number))
    return sampler.finish()


def functions(stacks, pid, thread="MainThread"):
    sample = stacks.samples[pid][-1]
    (found,) = [t for t in sample.threads if t.name == thread]
    return [stacks.frames[i].function for i in stacks.stacks[found.stack]]


def test_busy_sleeping_and_no_python_at_all(start):
    busy, sleeping = start(BUSY, "busy"), start(SLEEPING, "sleeping")
    other = subprocess.Popen(["sleep", "600"])
    try:
        stacks = look(busy.pid, sleeping.pid, other.pid, rounds=2)
    finally:
        other.kill()
        other.wait()
    assert stacks.gaps == ()
    assert set(stacks.samples) == {busy.pid, sleeping.pid}
    assert functions(stacks, sleeping.pid) == ["nap", "<module>"]
    assert functions(stacks, busy.pid) == ["<module>"]
    (main,) = stacks.samples[busy.pid][0].threads
    assert (main.tid, main.active, main.owns_gil) == (busy.pid, True, True)
    first, second = (sample.at_s for sample in stacks.samples[busy.pid])
    assert 0.0 < first < 1.0 < second < 2.0, "planned for 0 and 1; a dump is over within well under a second"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert stacks.python == {busy.pid: version, sleeping.pid: version}
    assert "hunter2" not in repr(stacks)
    assert state(busy.pid) == "R"
    assert state(sleeping.pid) == "S"


def test_pystack_reads_what_py_spy_reads(start):
    child = start(SLEEPING)
    stacks = look(child.pid, pystack=True)
    assert stacks.gaps == ()
    assert {sample.source for sample in stacks.samples[child.pid]} == {"pystack", "py-spy"}
    assert {thread.stack for sample in stacks.samples[child.pid] for thread in sample.threads} == {0}
    assert functions(stacks, child.pid) == ["nap", "<module>"]


def test_threads_by_name_and_the_thread_that_is_joined(start):
    child = start(JOINING)
    sampler = StackSampler(options(), find_pyspy())
    end = time.monotonic() + DEADLINE_S
    while True:
        sampler.sample([Target(pid=child.pid, state="S")], 0.0)
        stacks = sampler.finish()
        threads = {thread.name: thread for thread in stacks.samples[child.pid][-1].threads}
        joined = {local.value for local in threads["MainThread"].locals if local.name == "self"}
        if joined or time.monotonic() > end:
            break
        sampler = StackSampler(options(), find_pyspy())
    own = {local.value for local in threads["rollout-7"].locals if local.name == "self"}
    assert joined
    assert joined == own


def test_a_stopped_process_is_read_and_stays_stopped(start):
    child = start(SLEEPING)
    child.send_signal(signal.SIGSTOP)
    wait_for(lambda: state(child.pid) == "T", "it does not stop")
    stacks = look(child.pid)
    assert stacks.samples[child.pid][0].source == "py-spy --nonblocking"
    assert functions(stacks, child.pid)[-1] == "<module>"
    assert stacks.gaps == ()
    assert state(child.pid) == "T"


def vfork_parent(start, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    child = start(VFORK_PARENT, FIFO=str(fifo))
    wait_for(lambda: state(child.pid) == "D", "it does not come to state D")
    return child, fifo


def let_go(fifo):
    writer = os.open(fifo, os.O_WRONLY)
    os.close(writer)


def test_uninterruptible_sleep_is_read_without_waiting(start, tmp_path):
    child, fifo = vfork_parent(start, tmp_path)
    started = time.monotonic()
    stacks = look(child.pid)
    assert time.monotonic() - started < 3
    assert stacks.samples[child.pid][0].source == "py-spy --nonblocking"
    assert stacks.gaps == ()
    let_go(fifo)
    wait_for((tmp_path / "target.ready.after").exists, "the target does not go on")


def test_a_killed_dump_leaves_no_stop_behind(start, tmp_path, monkeypatch):
    """The rare case of a thread that falls asleep after we looked: the blocking dump hangs, is killed, and the target must go on."""
    child, fifo = vfork_parent(start, tmp_path)
    monkeypatch.setattr("ray_rl_debug.collect.pyspy._has_sleeper", lambda *_: False)
    stacks = look(child.pid, timeout_s=1.0)
    assert stacks.samples[child.pid][0].source == "py-spy --nonblocking"
    let_go(fifo)
    wait_for((tmp_path / "target.ready.after").exists, "the target does not go on")
    wait_for(lambda: state(child.pid) == "S", "the target was left stopped")


def test_processes_that_end_are_counted(start):
    child = start(ENDS)
    child.wait()
    sleeping = start(SLEEPING, "sleeping")
    sampler = StackSampler(options(), find_pyspy())
    sampler.sample([Target(pid=child.pid, state="S"), Target(pid=sleeping.pid, state="S")], 0.0)
    stacks = sampler.finish()
    assert list(stacks.samples) == [sleeping.pid]
    (gap,) = stacks.gaps
    assert (gap.id, gap.what) == (gaps.PROCESS_GONE, f"stacks of process {child.pid}")


FORBIDDEN = """
import json, os, sys, time
from types import SimpleNamespace
from ray_rl_debug.collect.stacks import StackSampler, Target
os.setgroups([]); os.setgid(65534); os.setuid(65534)
o = SimpleNamespace(samples=2, interval_s=0, native=False, pystack=False, timeout_s=4.0, pyspy=None)
sampler = StackSampler(o, sys.argv[1])
targets = [Target(pid=int(pid), state="S") for pid in sys.argv[2:]]
sampler.sample(targets, 0.0)
# The second sample must not start py-spy again: a new process takes milliseconds, an answer from memory does not
started = time.monotonic()
sampler.sample(targets, 1.0)
assert time.monotonic() - started < 0.002
print(json.dumps([[gap.id, gap.what] for gap in sampler.finish().gaps]))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to start processes of two users")
def test_a_forbidden_process_is_one_gap_and_not_asked_again(start):
    children = [start(SLEEPING, f"own{i}") for i in range(3)]
    pids = [child.pid for child in children]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        binary = shutil.copy(find_pyspy(), folder)
        done = subprocess.run([sys.executable, "-c", FORBIDDEN, binary, *map(str, pids)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[gaps.STACKS_REFUSED, "stacks of 3 processes"]]
    assert {state(pid) for pid in pids} == {"S"}


@pytest.mark.skipif(shutil.which("unshare") is None or os.getuid() != 0, reason="needs root and unshare")
def test_threads_of_another_pid_namespace_have_our_ids(start):
    outer = start(
        "import sys, subprocess\n"
        'text = \'import os, threading, time; threading.Thread(target=time.sleep, args=(600,), name="x").start(); '
        'open(os.environ["READY"] + ".inner", "w").close(); time.sleep(600)\'\n'
        "child = subprocess.Popen(['unshare', '--pid', '--fork', '--mount-proc', sys.executable, '-c', text])\n"
        "ready()\nchild.wait()\n"
    )
    ready = Path(outer.args[1]).parent / "target.ready.inner"
    unshare = int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()[0])
    end = time.monotonic() + DEADLINE_S
    while not ready.exists():
        if (read_status(unshare) or {}).get("State", "Z")[0] == "Z":
            pytest.skip("no PID namespaces here")
        assert time.monotonic() < end
        time.sleep(0.01)
    (inner,) = map(int, Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split())
    stacks = look(inner)
    ids = {thread.name: thread.tid for thread in stacks.samples[inner][0].threads}
    assert ids["MainThread"] == inner
    assert sorted(ids.values()) == sorted(int(tid) for tid in os.listdir(f"/proc/{inner}/task"))


RAY_DRIVER = """
import json, os, ray
ray.init(num_cpus=2, include_dashboard=False, _temp_dir=os.environ["RAY_TMP"], log_to_driver=False)
import threading, time

@ray.remote(num_cpus=0)
def never():
    time.sleep(600)

@ray.remote(num_cpus=0)
class Caller:
    def pid(self):
        return os.getpid()
    def block(self, wrapped):
        ray.wait(wrapped, num_returns=1, timeout=None)

refs = [never.remote() for _ in range(7)]
caller = Caller.remote()
pid = ray.get(caller.pid.remote())
caller.block.remote(refs[:1])
threading.Thread(target=lambda: ray.get(refs[6]), name="side", daemon=True).start()
with open(os.environ["READY"] + ".ids", "w") as f:
    json.dump({"ids": [r.hex() for r in refs], "actor": pid}, f)
ready()
ray.get(refs)
"""


@pytest.fixture
def ray_folder():
    """Short, because Ray's Unix sockets below it must stay under 108 characters."""
    with tempfile.TemporaryDirectory(prefix="rd", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield folder


def test_objects_that_a_ray_driver_and_an_actor_wait_for(ray_folder, start):
    env = {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMP": ray_folder}
    child = start(RAY_DRIVER, **env)
    truth = json.loads((Path(child.args[1]).parent / "target.ready.ids").read_text())
    actor = truth["actor"]
    try:
        stacks, end = None, time.monotonic() + DEADLINE_S
        while stacks is None or len(stacks.object_refs.get(child.pid, ())) < 2 or actor not in stacks.object_refs:
            assert time.monotonic() < end, stacks and stacks.object_refs
            stacks = look(child.pid, actor)
        waits = {wait.tid: wait for wait in stacks.object_refs[child.pid]}
        assert waits[child.pid].object_ids == tuple(truth["ids"])
        assert waits[child.pid].complete is True
        (side,) = [wait for tid, wait in waits.items() if tid != child.pid]
        assert side.object_ids == (truth["ids"][6],)
        (of_actor,) = stacks.object_refs[actor]
        assert (of_actor.call, of_actor.object_ids, of_actor.complete) == ("wait", (truth["ids"][0],), True)
        assert state(child.pid) == "S"
        assert state(actor) == "S"
    finally:
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(20)
