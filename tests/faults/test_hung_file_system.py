"""A file system hangs under the job's sources, logs and caches, and under our output: a real FUSE mount whose server has gone silent."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hung_mount import HungMount, can_mount, hung_mount
from processes import MARK, marked, wait_for

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.bounded.programs import Finished, run_bounded
from ray_rl_debug.collect.files import FileReader
from ray_rl_debug.collect.flight_recorder import read_flight_files
from ray_rl_debug.collect.live_counters import read_files
from ray_rl_debug.collect.logs import collect_log_lines
from ray_rl_debug.collect.source_lines import read_calls
from ray_rl_debug.model import gaps
from ray_rl_debug.model.codec import read_snapshot
from ray_rl_debug.model.snapshot import Process, RayJob
from ray_rl_debug.ray_state.roll_call import RollCall
from ray_rl_debug.watch import history as history_module
from ray_rl_debug.watch.history import Event, History
from ray_rl_debug.watch.job_watch import JobWatch
from ray_rl_debug.watch.learn import Limits
from ray_rl_debug.watch.live import Live
from ray_rl_debug.watch.loop import Companion
from ray_rl_debug.watch.notify import Notifier
from ray_rl_debug.watch.options import WatchOptions

pytestmark = [pytest.mark.integration, pytest.mark.skipif(not can_mount(), reason="needs root and /dev/fuse")]

SOURCE = """
import os, sys, threading
data = open(os.path.join(os.path.dirname(__file__), "data"))
def rollout():
    threading.Event().wait()
print("ready", flush=True)
rollout()
"""
SOON_S = 8.0
"""For one reader; its own deadlines are 1 or 2 s, and the machine may be busy."""


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[HungMount]:
    with hung_mount(tmp_path / "shared", {"train.py": SOURCE, "data": "x", "raylet.err": "E: CUDA out of memory\n"}) as mounted:
        yield mounted


@pytest.fixture
def job(mount: HungMount) -> Iterator[int]:
    """A process that runs from the mount, keeps its caches there and holds a file open there; then the mount hangs."""
    env = {**os.environ, "HOME": str(mount.folder), "RANK": "0", "TORCH_FR_DUMP_TEMP_FILE": f"{mount.folder}/trace_"}
    child = subprocess.Popen([sys.executable, str(mount.folder / "train.py")], stdout=subprocess.PIPE, env=env)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    mount.silence()
    yield child.pid
    child.kill()
    child.stdout.close()


def test_the_mount_really_hangs(mount: HungMount) -> None:
    """The mount of these tests answers, then it does not.

    Who touches a file there waits; a deadline holds all the same.
    """
    assert (mount.folder / "data").read_text() == "x"
    mount.silence()
    with pytest.raises(TimeoutError):
        within(0.3, (mount.folder / "data").read_text)


def test_snapshot_of_a_job_on_a_hung_mount(job: int, mount: HungMount, tmp_path: Path) -> None:
    """Sources, caches, an open file of the job and the folder of ``-o`` lie on a mount that hangs.

    The report comes out with the stacks, says which file is on which mount, the error names the folder, and the process ends.
    """
    mark = uuid.uuid4().hex
    program = (
        "import sys\nfrom ray_rl_debug.commands import cli, streams\nfrom ray_rl_debug.saving import files\nfiles.SAVE_S = streams.LEAVE_S = 1.0\n"
        f"sys.argv[1:] = ['snapshot', '--pid', '{job}', '--samples', '2', '--interval', '0.2', '-o', '{mount.folder}/out', '--json']\n"
        "sys.exit(cli.main())\n"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=50, env={**os.environ, MARK: mark})
    assert time.monotonic() - began < 45
    assert done.returncode == 3
    report = json.loads(done.stdout)
    assert report["schema"] == "rayrl-debug/report/1"
    assert str(mount.folder / "train.py") in done.stdout.decode()
    assert b"cannot write" in done.stderr
    assert b"hangs" in done.stderr
    wait_for(lambda: not [pid for pid in marked(mark) if not is_killed(pid)], f"left behind: {marked(mark)}", 5)


def is_killed(pid: int) -> bool:
    """Has it gone, or does only the kernel keep it, whose request of the mount has no answer?"""
    try:
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    except OSError:
        return True
    return status["State"].startswith(("D", "Z")) and bool(int(status["ShdPnd"], 16) & 1 << signal.SIGKILL - 1)


def test_snapshot_is_kept_elsewhere(job: int, tmp_path: Path) -> None:
    """Only the job's own files lie on a mount that hangs.

    All files are written, and the snapshot names the mount of the open file.
    """
    from ray_rl_debug.model.codec import read_snapshot

    command = [
        sys.executable,
        "-m",
        "ray_rl_debug",
        "snapshot",
        "--pid",
        str(job),
        "--samples",
        "2",
        "--interval",
        "0.2",
        "-q",
        "-o",
        str(tmp_path / "o"),
    ]
    done = subprocess.run(command, capture_output=True, timeout=90)
    assert done.returncode in (0, 1, 3), done.stderr
    (node,) = read_snapshot(tmp_path / "o" / "snapshot.json.gz").nodes
    (process,) = node.processes
    assert {f.mount for f in process.files or () if f.path.endswith("/data")} == {"fuse hung"}
    assert len(process.samples) == 2
    assert not [g for g in node.gaps if g.id == gaps.COLLECTOR_FAILED]


def test_source_lines(job: int, mount: HungMount, tmp_path: Path) -> None:
    """One source lies on a mount that hangs, one on a local disk.

    The local one is read, the child that hangs is killed, and the next look leaves the mount alone.
    """
    local = tmp_path / "local.py"
    local.write_text("def f(x):\n    x.wait()\n")
    os.utime(local, (1, 1))
    began = time.monotonic()
    lines = {1: (job, str(mount.folder / "train.py"), 5), 2: (job, str(local), 2)}
    found = read_calls(lines, total_s=0.5)
    assert {key: line.calls for key, line in found.items()} == {2: ("wait",)}
    assert time.monotonic() - began < SOON_S
    asked = []

    def run(argv: list[str], timeout_s: float) -> Finished:
        asked.append(argv[-1])
        return run_bounded(argv, timeout_s)

    assert read_calls(lines, run=run) == found
    assert "train.py" not in asked[0]


def test_logs(mount: HungMount, tmp_path: Path) -> None:
    """The folder of Ray's session, or one log in it by a link, lies on a mount that hangs.

    Each is a gap within seconds; logs that lie elsewhere are read.
    """
    mount.silence()
    began = time.monotonic()
    _, (gap,) = collect_log_lines([Process(pid=1, title="")], mount.folder)
    assert gap.id == gaps.LOGS_UNREAD
    logs = tmp_path / "session" / "logs"
    logs.mkdir(parents=True)
    (logs / "gcs_server.err").symlink_to(mount.folder / "raylet.err")
    (logs / "raylet.err").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
    lines, (link,) = collect_log_lines([], tmp_path / "session")
    assert len(lines[None]) == 1
    assert "gcs_server.err" in link.reason
    assert time.monotonic() - began < SOON_S


def test_cache_folder(job: int) -> None:
    """The folder where torch would leave its Flight Recorder dumps lies on a mount that hangs.

    No dump is found, within seconds.
    """
    began = time.monotonic()
    assert read_files([job], {}) == []
    assert time.monotonic() - began < SOON_S


def test_open_files_without_the_mount_table(job: int) -> None:
    """The mount table does not tell that the open file lies on a mount that hangs.

    The look at it is given up after its deadline.
    """
    from ray_rl_debug.collect.mounts import Mounts

    reader = FileReader()
    reader._mounts_of = lambda pid: Mounts("")  # type: ignore[method-assign]
    with pytest.raises(TimeoutError):
        within(0.5, lambda: reader.read(job))


def test_history_of_a_companion(mount: HungMount, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of a companion's history lies on a mount that hangs.

    The first event waits for its deadline, later ones do not; all of them are kept in memory, and the trouble is told.
    """
    monkeypatch.setattr(history_module, "DISK_S", 0.3)
    mount.silence()
    history = History(mount.folder / "job")
    began = time.monotonic()
    history.load()
    for number in range(50):
        history.add(Event(time_s=float(number), kind="progress"))
    assert history.new_folder(0.0).name == "1970-01-01T00-00-00Z"
    assert history.prune(keep=1, max_bytes=1) == []
    assert time.monotonic() - began < SOON_S
    assert len(history.events) == 50
    assert history.trouble is not None
    assert history.is_hung()


def test_people_are_told_first(mount: HungMount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run hangs, and so does the folder of its companion.

    The webhook is told at once, without a folder; the command of --on-hang waits for its files, which come to the folder for temporary files.
    """
    snapshot = read_snapshot(Path(__file__).parent.parent / "cases" / "RRD107" / "hang.json.gz")
    said, monotonic = tmp_path / "said", time.monotonic
    options = WatchOptions(output=mount.folder, on_hang=f'cp "$RAYRL_DEBUG_REPORT_TEXT" {said}', webhooks=("http://here",))
    told: list[tuple[float, object]] = []
    monkeypatch.setattr(Notifier, "_post", lambda self, url, data: told.append((monotonic() - began, json.loads(data))))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    live = Live(io.StringIO(), is_terminal=False)
    companion = Companion(options, SimpleNamespace(gather=lambda job: snapshot), lambda _: RollCall(), live)  # type: ignore[arg-type]
    watch = JobWatch(RayJob(job_id="01000000"), History(mount.folder / "job"), Limits(), interval_s=2.0, now=0.0, now_s=0.0)
    mount.silence()
    began = monotonic()
    companion._look(watch)
    companion._telling.finish()
    ((after_s, body),) = told
    assert after_s < history_module.DISK_S, "before the disk was given up"
    assert isinstance(body, dict) and (body["event"], body["folder"]) == ("hang", None)
    assert "RRD107" in said.read_text()


def test_doctor_of_a_folder(mount: HungMount, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log folder, or Ray's temporary folder, lies on a mount that hangs when ``doctor`` tries it.

    The folder's error says so, with the type of the mount.
    """
    from ray_rl_debug.collect.health import folders

    monkeypatch.setattr(folders, "FOLDER_S", 0.3)
    mount.silence()
    for found in (folders.read_logs(mount.folder / "logs"), folders.read_temp(mount.folder / "ray", ())):
        assert "hangs" in (found.error or "")
        assert found.filesystem == "fuse hung"


def test_too_many_calls_that_hang(mount: HungMount) -> None:
    """Call after call into a mount that hangs does not come back.

    After some dozens no more are tried, and no more threads are left behind.
    """
    import threading

    from ray_rl_debug.bounded import calls as module

    mount.silence()
    for _ in range(60):
        with pytest.raises(TimeoutError):
            within(0.01, (mount.folder / "data").read_text)
    assert len([t for t in threading.enumerate() if t.name == "within"]) <= module.STUCK_ENOUGH + module.KEPT_IDLE


def test_flight_files(mount: HungMount) -> None:
    """A Flight Recorder dump lies on a mount that hangs.

    Its reader is given up after its deadline.
    """
    mount.silence()
    with pytest.raises(TimeoutError):
        within(0.3, lambda: read_flight_files([mount.folder / "data"], follow=False))


HIDDEN = """
import ctypes, mmap, os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
area = ctypes.CDLL(None, use_errno=True).mmap
area.restype, area.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
arguments = int(open("/proc/self/stat").read().rpartition(")")[2].split()[45])
area(arguments & -4096, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE | 0x10, file, 0)  # MAP_FIXED: over the page that holds them
print("ready", flush=True)
time.sleep(600)
"""


def test_command_line_of_a_process_that_nobody_can_read(mount: HungMount) -> None:
    """The page with the command line of a process lies on a mount that hangs: ``ps`` waits for ever.

    The process is passed over after half a second, at once the next time; a watch goes on with the other processes.
    """
    from ray_rl_debug.collect.procfs import read_arguments, read_stat
    from ray_rl_debug.watch.signals import Known, SignReader

    child = subprocess.Popen([sys.executable, "-c", HIDDEN, str(mount.folder / "data")], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        mount.silence()
        began = time.monotonic()
        assert read_arguments(child.pid) == []
        assert read_arguments(os.getpid()) != []
        assert time.monotonic() - began < SOON_S
        began = time.monotonic()
        assert read_arguments(child.pid) == []
        assert time.monotonic() - began < 0.4
        stats = {pid: read_stat(Path(f"/proc/{pid}")) for pid in (child.pid, os.getpid())}
        reader = SignReader()
        reader.watch(Known(pid=pid, born=stat.start_ticks, kind="child", ppid=1, title="") for pid, stat in stats.items() if stat is not None)
        for _ in range(3):
            assert {s.pid for s in reader.read().signs} == {child.pid, os.getpid()}
        assert time.monotonic() - began < SOON_S
        reader.close()
    finally:
        child.kill()
        child.stdout.close()  # type: ignore[union-attr]
