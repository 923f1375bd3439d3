"""A program that is looked at by its number ends meanwhile: what it printed last tells why."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.processes import wait_for

from ray_rl_debug.capture.here import take_here
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State

pytestmark = pytest.mark.integration

WORKER = "(EngineCore pid=5056) ERROR 11-28 09:12:05 [multiproc_executor.py:316] Worker proc VllmWorker-0 died unexpectedly (exit code: -9)"
CORE = "(APIServer pid=8518) WARNING 11-28 09:18:40 [core_client.py:817] [shutdown] MPClient: engine core exited unexpectedly; starting cleanup"
SERVER = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause."
PEER = "RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:58056: Connection reset by peer."
FATAL = "(EngineCore pid=14951) ERROR 11-28 09:33:28 [core.py:1512] EngineCore encountered a fatal error."


@contextlib.contextmanager
def ending(log: Path, lines: str, before: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A program that prints these lines and ends as soon as it may read one; its parent does not collect its exit status before the end."""
    code = f"import sys\n{before}\nprint('up', flush=True)\nsys.stdin.readline()\nprint({lines!r}, flush=True)"
    with log.open("wb") as out, subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=out, stderr=out) as child:
        yield child


def looked_at(tmp_path: Path, lines: str, *, name: str = "server.log", before: str = "") -> Report:
    with ending(tmp_path / name, lines, before) as child:
        assert child.stdin is not None
        wait_for(lambda: "up" in (tmp_path / name).read_text(), "it has not begun", 20)

        def end(said: str) -> None:
            if said.startswith("sample 2") and child.stdin is not None:
                child.stdin.write(b"\n")
                child.stdin.flush()

        options = CollectOptions(pids=(child.pid,), samples=3, interval_s=0.5)
        return diagnose(take_here(options, progress=end, stop=threading.Event()))


@pytest.mark.parametrize(
    ("lines", "cause", "who"), [(WORKER, "engine-died", "VllmWorker rank 0"), (CORE + "\n" + SERVER, "engine-died", "engine core of python")]
)
def test_its_last_words_name_who_ended_first(lines: str, cause: str, who: str, tmp_path: Path) -> None:
    report = looked_at(tmp_path, lines)
    first = report.findings[0]
    assert (report.verdict.state, first.cause.value, first.who[0].label, first.certainty) == (State.HANG, cause, who, Certainty.LIKELY)
    assert "has ended with status 0" in first.summary
    assert f"{tmp_path}/server.log:2" in first.evidence[0].where


def test_behind_the_words_of_a_victim_nobody_is_likely(tmp_path: Path) -> None:
    report = looked_at(tmp_path, PEER + "\n" + FATAL)
    assert report.verdict.state is State.UNKNOWN
    assert [f.certainty for f in report.findings] == [Certainty.POSSIBLE]
    assert "before that another process lost its connection" in report.verdict.summary
    assert report.verdict.next == f"rayrl-debug report {tmp_path}/server.log"


@pytest.mark.parametrize("lines", [SERVER, "good bye"])
def test_words_of_no_cause_lead_to_the_log(lines: str, tmp_path: Path) -> None:
    """A request that met a dead engine, or nothing at all: the answer is open, and no longer look would tell more."""
    report = looked_at(tmp_path, lines, name="my server.log")
    assert (report.verdict.state, report.findings) == (State.UNKNOWN, ())
    assert "has ended with status 0" in report.verdict.summary
    assert report.verdict.next == (f"rayrl-debug report '{tmp_path}/my server.log'" if lines is SERVER else "rayrl-debug report LOG")


def test_old_lines_did_not_end_it(tmp_path: Path) -> None:
    """An error of the start, which it lived with for a long log."""
    report = looked_at(tmp_path, "\n".join([WORKER, *["all is well: request served in 12 ms"] * 2000]))
    assert report.findings == ()


def test_whose_child_goes_on_is_no_cause(tmp_path: Path) -> None:
    """A launcher ends, and what it started works: an old error of a part is in nobody's way."""
    over = tmp_path / "over"
    works = f"import os\nwhile not os.path.exists({str(over)!r}): sum(range(1000))"
    try:
        report = looked_at(tmp_path, WORKER, before=f"import subprocess\nsubprocess.Popen([sys.executable, '-c', {works!r}])")
    finally:
        over.touch()
    assert report.findings == ()
    assert report.verdict.state is State.HEALTHY
