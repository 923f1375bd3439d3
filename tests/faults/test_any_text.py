"""What we parse may be any bytes: what py-spy and pystack print, what /proc says, what a memory map holds."""

from __future__ import annotations

import io
import json
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ray_rl_debug.bounded import supervisor
from ray_rl_debug.bounded.programs import Finished
from ray_rl_debug.cluster import driver_messages
from ray_rl_debug.collect import pyspy
from ray_rl_debug.collect.async_tasks.memory import _mapping
from ray_rl_debug.collect.discover import _Table
from ray_rl_debug.collect.files import FileReader, read_locks
from ray_rl_debug.collect.mounts import Mounts
from ray_rl_debug.collect.process_facts import _io, _switches
from ray_rl_debug.collect.procfs import finish_threads, read_arguments, read_environment, read_stat, read_status, read_threads
from ray_rl_debug.collect.source_lines import _answers
from ray_rl_debug.collect.stacks import StackSampler
from ray_rl_debug.formats import pystack
from ray_rl_debug.model import codec
from ray_rl_debug.watch import wire

QUICK = settings(max_examples=150, deadline=2000, suppress_health_check=[HealthCheck.too_slow])
GOOD_STAT = b"7 (a) b) R 1 7 7 0 -1 4194304 1 0 0 0 12 3 0 0 20 0 2 0 900 1000 30 18446744073709551615 1 1" + b" 0" * 10 + b" 17 1" + b" 0" * 13
FRAMES = st.lists(
    st.fixed_dictionaries(
        {"name": st.text(max_size=20), "filename": st.text(max_size=20), "line": st.integers(-(1 << 70), 1 << 70)},
        optional={"locals": st.none() | st.lists(st.fixed_dictionaries({"name": st.text(max_size=5), "addr": st.integers(0, 1 << 64)}), max_size=2)},
    ),
    max_size=4,
)
THREADS = st.lists(
    st.fixed_dictionaries(
        {"frames": FRAMES},
        optional={
            "thread_name": st.none() | st.text(max_size=20),
            "os_thread_id": st.none() | st.integers(-(1 << 40), 1 << 70),
            "active": st.booleans(),
            "owns_gil": st.booleans(),
        },
    ),
    max_size=4,
)


def take(out: bytes) -> None:
    """As a sampler takes the answer of py-spy, up to the file that is written."""
    outcome = pyspy._outcome(os.getpid(), Finished(code=0, out=out, err=b""), False, False, 1.0, Path("/proc"))
    assert outcome.kind in ("ok", "failed")
    sampler = StackSampler(SimpleNamespace(native=False, pystack=False, timeout_s=1.0), None)  # type: ignore[arg-type]
    sampler._record(os.getpid(), 0.0, outcome, ())
    stacks = sampler.finish()
    for frame in stacks.frames:
        codec.encode(frame)
    for samples in stacks.samples.values():
        for sample in samples:
            codec.encode(sample)


@QUICK
@given(st.binary(max_size=300) | THREADS.map(lambda threads: json.dumps(threads).encode()))
@example(b"")
@example(b"[]")
@example(b"[" * 5000)
@example(b'[{"frames": [{"name": "\\ud800", "filename": "x.py", "line": 1}]}]')
@example(b'[{"frames": [{"name": "\xff", "filename": "x.py", "line": 1}]}]')
@example(b'[{"frames": [{"name": "f", "filename": "x.py", "line": 1e400}]}]')
@example(b'[{"frames": [{"name": "f", "filename": "x.py", "line": -5, "locals": [{"name": "self", "addr": 18446744073709551616}]}]}]')
def test_what_py_spy_prints(out: bytes) -> None:
    """py-spy prints any bytes, or a good document with odd names and numbers.

    There are stacks that can be written, or a reason; no other error.
    """
    take(out)


@QUICK
@given(st.text(max_size=300), st.integers(0, 10**30))
@example('Traceback for thread 11 (x) [Has the GIL] (most recent call last):\n    (Python) File "", line 1, in f', 10**30)
@example("Traceback for thread ²", 1)
def test_what_pystack_prints(text: str, number: int) -> None:
    """pystack prints any text.

    There are threads or none; no error.
    """
    pystack.parse(text.splitlines())
    pystack.parse(f'Traceback for thread {number} (x) [] (most recent call last):\n    (C) File "a", line {number}, in f'.splitlines())


@QUICK
@given(st.binary(max_size=200), st.integers(0, len(GOOD_STAT) - 1), st.binary(min_size=1, max_size=3))
@example(b"", 0, b"(")
@example(b")", 0, b")")
@example(GOOD_STAT, 3, b"\xff")
@example(b"7 (x) \xb2 \xb2", 5, b"\xb2")
@example("7 (x) R ² ² ² ² ² ² ² ² ² ² ² ² ² ² ² ² ² ² ² ² ² ²".encode(), 9, b"-")
@example(b"1: POSIX  ADVISORY  WRITE " + b"9" * 5000 + b" 00:01:2 0 EOF", 0, b"1")
def test_what_proc_says(data: bytes, at: int, odd: bytes) -> None:
    """The files of a process below /proc hold any bytes, or good ones with a few changed; its threads too.

    Each reader gives what it can, or nothing; no error.
    """
    changed = GOOD_STAT[:at] + odd + GOOD_STAT[at + len(odd) :]
    for content in (data, changed):
        with tempfile.TemporaryDirectory() as folder:
            proc = Path(folder)
            thread = proc / "7" / "task" / "7"
            thread.mkdir(parents=True)
            (proc / "7" / "fd").mkdir()
            (proc / "7" / "fd" / "0").symlink_to("pipe:[5]")
            (proc / "7" / "fd" / "1").symlink_to(proc / "locks")
            for name in ("stat", "status", "cmdline", "environ", "maps", "mounts", "io", "schedstat", "wchan", "syscall"):
                (proc / "7" / name).write_bytes(content)
                (thread / name).write_bytes(content)
            (proc / "locks").write_bytes(content)
            read_stat(proc / "7")
            read_status(7, proc)
            read_arguments(7, proc)
            read_environment(7, proc)
            clocks = read_threads(7, proc)
            finish_threads(7, clocks, clocks, 0.01, proc)
            _io(7, proc)
            _switches(7, clocks, proc)
            read_locks(proc)
            FileReader(proc).read(7)
            _Table(proc)
            pyspy.read_status(7, proc)
            pyspy.thread_ids_by_inner_id(7, proc)
            supervisor.start_ticks(7, str(proc))
            assert supervisor.release(1 << 29, 1, str(proc), patience_s=0) is False
            supervisor.is_stopped(7, str(proc))


@QUICK
@given(st.text(max_size=200))
@example("nfs /mnt\\040a nfs rw 0 0")
@example("x / nfs4 rw 0 0")
@example(" \\777 \\000")
def test_mounts(text: str) -> None:
    """A mount table holds any text.

    Each path has a mount or none; no error.
    """
    mounts = Mounts(text)
    for path in ("/", "", "/mnt/a/b", "a", "//", text):
        mounts.network(path)


@pytest.mark.parametrize(
    ("table", "path", "network"),
    [
        ("srv:/ / nfs4 rw 0 0", "/home/u/x.py", "nfs4 srv:/"),
        ("srv:/ / nfs4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0", "/tmp/x", None),
        ("/dev/sda / ext4 rw 0 0\nweka /data wekafs rw 0 0", "/data/x", "wekafs weka"),
        ("/dev/sda / ext4 rw 0 0\nweka /data wekafs rw 0 0", "/database/x", None),
        ("/dev/sda / ext4 rw 0 0\nv /mnt/my\\040share virtiofs rw 0 0", "/mnt/my share/x", "virtiofs v"),
        ("/dev/sda / ext4 rw 0 0\nmap /home autofs rw 0 0\nsrv:/u /home/u nfs rw 0 0", "/home/u/x", "nfs srv:/u"),
        ("/dev/sda / ext4 rw 0 0\nmap /home autofs rw 0 0", "/home/u/x", "autofs map"),
        ("/dev/sda / ext4 rw 0 0\ns3 /b fuse.s3fs rw 0 0\np /p panfs rw 0 0", "/b/x", "fuse.s3fs s3"),
        ("srv:/ /mnt nfs rw 0 0\ntmpfs /mnt tmpfs rw 0 0", "/mnt/x", None),
    ],
)
def test_network_mounts_by_type(table: str, path: str, network: str | None) -> None:
    """Shared file systems of all kinds, also as the root of the machine, also below a name with a blank.

    A path is known to lie on one by the mount table alone.
    """
    assert Mounts(table).network(path) == network


@QUICK
@given(st.text(max_size=120))
@example("7f00-7f10 r--p 0 00:00 1 /lib/libpython3.so")
@example("zz-7f10 r--p 0 00:00 1")
@example("- r")
def test_a_memory_map(line: str) -> None:
    """A line of a memory map is any text.

    It is a mapping or none; no error.
    """
    _mapping(line)


@QUICK
@given(st.binary(max_size=200))
@example(b'[1, ["wait"]]\n[2')
@example(b"[1, 5]")
@example(b"[1e400, []]")
def test_what_the_reader_of_sources_says(out: bytes) -> None:
    """The child that reads sources was killed in the middle of a line, or says anything.

    What came whole is used; no error.
    """
    list(_answers(out))


def test_what_our_own_processes_say_to_each_other() -> None:
    """A reason that one process of ours gives another holds a byte that is no letter, from the name of a file.

    It arrives, spelled out.
    """
    reason = "cannot read /data/caf\udce9"
    assert wire.decode_answer(wire.encode(wire.Collected(ticket=1, data=b"\xff", reason=reason))).reason == "cannot read /data/caf\\xe9"
    packed = io.BytesIO(driver_messages.pack(driver_messages.Lost("n1", reason)))
    assert driver_messages.read_message(packed.read) == driver_messages.Lost("n1", "cannot read /data/caf\\xe9")
