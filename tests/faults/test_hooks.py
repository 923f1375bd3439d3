"""Commands that people give us to be told by, run for real."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.programs import wait_for

from ray_rl_debug.model.report import Certainty, Report, State, Verdict
from ray_rl_debug.model.snapshot import Snapshot
from ray_rl_debug.watch.closer_look import Look, hook_environment
from ray_rl_debug.watch.hooks import MARK, run_hook
from ray_rl_debug.watch.notify import Notifier


def look(summary: str, folder: Path) -> Look:
    report = Report(verdict=Verdict(state=State.HANG, summary=summary, certainty=Certainty.PROVEN))
    return Look(snapshot=Snapshot(taken_time_s=0.0), report=report, folder=folder, took_s=0.1)


@pytest.mark.parametrize(
    ("summary", "shown"),
    [
        ("actor/0 \0 hangs", b"actor/0 \\x00 hangs"),
        ("half \ud800 a letter", b"half \\ud800 a letter"),
        ("a path caf\udce9", b"a path caf\xe9"),
        ("x" * 400_000, b"x" * 16_000),
    ],
    ids=["NUL", "half a letter", "a byte that is no letter", "longer than a variable may be"],
)
def test_a_hook_runs_whatever_the_summary_holds(tmp_path: Path, summary: str, shown: bytes) -> None:
    """The summary of a report holds a NUL, half a letter, a byte that is no letter, or is longer than the kernel passes on.
    The command of --on-hang runs, and gets what can be given."""
    heard: list[str] = []
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder.mkdir()
    telling = Notifier(heard=heard.append)
    env = hook_environment(look(summary, folder), job_id="01000000", age_s=1.0)
    telling.run('printf %s "$RAYRL_DEBUG_SUMMARY" >"$RAYRL_DEBUG_FOLDER/said"', lambda: env)
    telling.finish(30)
    assert heard == []
    assert (folder / "said").read_bytes() == shown


def test_a_hook_gets_no_address_of_a_webhook(tmp_path: Path) -> None:
    """Addresses of webhooks, which are secrets, stand in our own environment.
    The command of --on-hang is not given them, and gets the rest of the environment."""
    base = {"RAYRL_DEBUG_SLACK": "https://x", "RAYRL_DEBUG_WEBHOOK": "https://y", "PATH": "/bin"}
    env = hook_environment(look("s", tmp_path), job_id="1", age_s=1.0, base=base)
    assert env["PATH"] == "/bin" and not {"RAYRL_DEBUG_SLACK", "RAYRL_DEBUG_WEBHOOK"} & set(env)


@pytest.mark.parametrize(
    "start",
    [
        "sleep 600 & echo $! >'{pids}'; wait",
        "(trap '' TERM; sleep 601 & echo $! >'{pids}'; wait) & wait",
        "setsid -f sh -c 'echo $$ >\"{pids}\"; exec sleep 602'; sleep 603",
        "env -i sleep 604 & echo $! >'{pids}'; wait",
    ],
    ids=["in the background", "deaf to SIGTERM", "in a session of its own", "without environment"],
)
def test_nothing_that_a_hook_started_outlives_its_time(tmp_path: Path, start: str) -> None:
    """A hook hangs, and so does a process that it started: in the background, deaf, in a session of its own, without environment.
    All of them are gone soon after the time limit, it is told once, and nobody else is touched."""
    pids, said = tmp_path / "pids", []
    code = f"{start.format(pids=pids)}"
    done = threading.Thread(target=lambda: said.append(run_hook(code, {"PATH": os.environ["PATH"]}, 1.0, patience_s=0.5)))
    done.start()
    wait_for(lambda: pids.exists() and pids.read_text().strip().isdigit(), "the hook starts its process")
    pid = int(pids.read_text())
    assert os.path.exists(f"/proc/{pid}")
    done.join(30)
    assert said == ["was ended after 1 s"]
    wait_for(gone(pid), "it is gone")


def gone(pid: int) -> Callable[[], bool]:
    def is_gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X")
        except OSError:
            return True

    return is_gone


def test_what_a_hook_leaves_behind_in_time_stays(tmp_path: Path) -> None:
    """A hook ends in time and leaves a process behind on purpose, as one that copies evidence away.
    That process goes on, and the exit code of a hook that failed is told."""
    pids = tmp_path / "pids"
    assert run_hook(f"sleep 600 >/dev/null 2>&1 & echo $! >'{pids}'", {"PATH": os.environ["PATH"]}, 30) is None
    pid = int(pids.read_text())
    try:
        # while it becomes the other program its environment reads as empty
        wait_for(lambda: MARK.encode() in Path(f"/proc/{pid}/environ").read_bytes(), "it carries our mark")
        assert not gone(pid)()
    finally:
        os.kill(pid, 9)
    assert run_hook("exit 3", {}, 30) == "ended with 3"
    assert "could not be started" in (run_hook("true \0", {}, 30) or "")
