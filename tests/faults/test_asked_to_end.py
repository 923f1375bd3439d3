"""Commands that are asked to end, and commands that nobody reads."""

from __future__ import annotations

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

import pytest
from processes import MARK, marked, started, troubles, wait_for

pytestmark = pytest.mark.integration

COMMAND = (sys.executable, "-m", "ray_rl_debug")
TARGET = "import sys, time\nprint('ready', flush=True)\nwhile True: time.sleep(0.01)"


def hear_signals() -> None:
    """In a child: what the one who runs the tests ignores (nohup, a job in the background) is not ignored by the command under test."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def target() -> Iterator[int]:
    with started(TARGET) as pid:
        yield pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_snapshot_is_asked_to_end(number: int, target: int, tmp_path: Path) -> None:
    """A snapshot that looks for a minute gets SIGTERM, SIGHUP or SIGINT in the middle.

    It ends at once with what it gathered, saved and shown, exit code 130, and leaves no process behind.
    """
    mark = uuid.uuid4().hex
    command = [*COMMAND, "snapshot", "--pid", str(target), "--samples", "60", "--interval", "1", "-o", str(tmp_path), "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, MARK: mark}, preexec_fn=hear_signals)
    assert child.stderr is not None
    while b"sample 2" not in (line := child.stderr.readline()):
        assert line, "it ended too soon"
    began = time.monotonic()
    child.send_signal(number)
    out, _ = child.communicate(timeout=30)
    assert time.monotonic() - began < 15
    assert child.returncode == 130
    assert json.loads(out)["schema"] == "rayrl-debug/report/1"
    assert (tmp_path / "snapshot.json.gz").stat().st_size > 0
    wait_for(lambda: not marked(mark) and not troubles(target), f"left behind: {marked(mark)} {troubles(target)}", 2)


@pytest.mark.parametrize("said", ["starting", "stopping"])
def test_the_demo_is_asked_to_end_twice(said: str) -> None:
    """The demo starts its cluster and gets SIGTERM twice, as `timeout` sends it: both at once, or the second when it cleans up.

    It ends with exit code 130, and leaves neither a process of its cluster nor a folder.
    """
    with tempfile.TemporaryDirectory(dir="/tmp") as scratch:  # paths of sockets are short
        environment = {**os.environ, "TMPDIR": scratch}
        child = subprocess.Popen([*COMMAND, "demo"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, preexec_fn=hear_signals)
        assert child.stderr is not None
        assert b"starting" in child.stderr.readline()
        child.send_signal(signal.SIGTERM)
        if said == "stopping":
            child.stderr.readline()  # that it ends the cluster
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)
        assert child.returncode == 130
        assert not list(Path(scratch).glob("rrd-*"))
        left = subprocess.run(["pgrep", "-f", scratch], capture_output=True, text=True, check=False)
        assert left.stdout == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("verb", [("report", "-"), ("doctor",)])
def test_any_command_is_asked_to_end(verb: tuple[str, ...], number: int, tmp_path: Path) -> None:
    """A command that reads a silent pipe, or checks a node, gets SIGTERM or SIGHUP.

    It ends with exit code 130 and says that it was interrupted; no process is left.
    """
    mark = uuid.uuid4().hex
    pipe = tmp_path / "fifo"
    os.mkfifo(pipe)
    arguments = [str(pipe) if a == "-" else a for a in verb]
    slow = tmp_path / "sitecustomize.py"
    slow.write_text(
        "import sys, threading, time\n"
        "if any('ray_rl_debug' in a for a in sys.orig_argv):\n"
        "    import ray_rl_debug.model.errors, builtins\n"
        "    import click\n"
        "    original = click.Command.invoke\n"
        "    def invoke(self, ctx):\n"
        "        if self.name in ('report', 'doctor'):\n"
        "            print('ready', flush=True)\n"
        "            time.sleep(60)\n"
        "        return original(self, ctx)\n"
        "    click.Command.invoke = invoke\n"
    )
    env = {**os.environ, MARK: mark, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', os.getcwd())}"}
    child = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, preexec_fn=hear_signals)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(number)
    _, said = child.communicate(timeout=30)
    assert child.returncode == 130
    assert b"interrupted" in said
    wait_for(lambda: not marked(mark), f"left behind: {marked(mark)}", 2)


IMPORTED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            try:
                for _ in range({times}):
                    os.kill(os.getpid(), {number})
            except KeyboardInterrupt:
                raise ImportError("a module in C makes this of it") from None
sys.meta_path.insert(0, Finder())
"""
"""As ``sitecustomize``: the process gets a signal just when it imports a module."""


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("click", signal.SIGINT),
        ("click", signal.SIGTERM),
        ("click", signal.SIGHUP),
        ("ray_rl_debug.model.errors", signal.SIGINT),
        ("ray_rl_debug.metric_sources.load", signal.SIGINT),
    ],
)
def test_asked_to_end_while_it_starts(module: str, number: int, tmp_path: Path) -> None:
    """Ctrl-C, SIGTERM or SIGHUP comes within the first third of a second, while modules are imported.

    It ends with exit code 130 and says that it was interrupted, without a traceback.
    """
    done = started_with(IMPORTED.format(module=module, number=int(number), times=1), tmp_path, "metrics", "run.jsonl", "--json")
    assert done.returncode == 130
    assert done.stderr.startswith("error: interrupted\n")
    assert len(done.stderr.splitlines()) == 3
    assert json.loads(done.stdout)["error"]["exit_code"] == 130


def test_asked_twice_to_end_while_it_starts(tmp_path: Path) -> None:
    """Ctrl-C comes twice while modules are imported, from a mount that may hang.

    The second one ends the process at once, without a traceback.
    """
    done = started_with(IMPORTED.format(module="click", number=int(signal.SIGINT), times=2), tmp_path, "metrics", "run.jsonl")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_asked_twice_to_end(tmp_path: Path) -> None:
    """Ctrl-C comes twice, the second time while the first is told.

    What is said is whole, the exit code 130, and there is no traceback.
    """
    twice = "import os, signal\nimport ray_rl_debug.privacy.masking as m\nplain = m.mask\n"
    twice += "m.mask = lambda text: [os.kill(os.getpid(), signal.SIGINT), plain(text)][1]\n"
    first = IMPORTED.format(module="ray_rl_debug.metric_sources.load", number=int(signal.SIGINT), times=1)
    done = started_with(first + twice, tmp_path, "metrics", "x")
    assert done.returncode == 130
    assert done.stderr.startswith("error: interrupted\n")
    assert len(done.stderr.splitlines()) == 3


def started_with(program: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in whose interpreter a program runs first."""
    (folder / "sitecustomize.py").write_text(program)
    (folder / "run.jsonl").write_text('{"step": 1, "reward": 0.5}\n')
    env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', os.getcwd())}"}
    command = [*COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=env, cwd=folder, check=False, preexec_fn=hear_signals)


def test_nohup_stays(target: int) -> None:
    """SIGHUP was ignored when the command was started, as under nohup.

    It stays ignored: the snapshot goes on to its end.
    """
    command = [*COMMAND, "snapshot", "--pid", str(target), "--samples", "2", "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert child.stderr is not None
    while b"sample 1" not in child.stderr.readline():
        pass
    child.send_signal(signal.SIGHUP)
    out, _ = child.communicate(timeout=60)
    assert child.returncode in (0, 1, 3)
    assert json.loads(out)["schema"] == "rayrl-debug/report/1"


STALLED = """
import sys
from ray_rl_debug.commands import cli, streams
streams.OUTPUT_S = 0.5
sys.argv[1:] = {arguments!r}
sys.exit(cli.main())
"""


def test_nobody_reads_standard_output(target: int, tmp_path: Path) -> None:
    """The reader of standard output has stopped, and the pipe is full.

    The files are written, the process says so on stderr and ends.
    """
    arguments = ["snapshot", "--pid", str(target), "--samples", "1", "--format", "html", "-o", str(tmp_path)]
    child = subprocess.Popen([sys.executable, "-c", STALLED.format(arguments=arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert child.stdout is not None
        fill(child.stdout.fileno())
        assert child.stderr is not None
        said = child.stderr.read()
        assert child.wait(30) == 3
        assert b"nobody read standard output" in said
        assert (tmp_path / "report.html").stat().st_size > 0
    finally:
        child.kill()
        child.wait()


def test_nobody_reads_standard_error(target: int) -> None:
    """The pipe of standard error is full, and nobody reads it.

    Progress is dropped; the report comes out all the same.
    """
    read_end, write_end = os.pipe()
    fill(read_end)
    child = subprocess.Popen([*COMMAND, "snapshot", "--pid", str(target), "--samples", "2", "--json"], stdout=subprocess.PIPE, stderr=write_end)
    os.close(write_end)
    try:
        out, _ = child.communicate(timeout=60)
        assert json.loads(out)["schema"] == "rayrl-debug/report/1"
        assert child.returncode in (0, 1, 3)
    finally:
        os.close(read_end)


def fill(pipe: int) -> None:
    """Fill a pipe through its other end, as a reader that has stopped would find it."""
    fd = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        while True:
            os.write(fd, bytes(4096))
    except BlockingIOError:
        os.close(fd)
