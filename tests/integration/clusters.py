"""Real clusters and jobs for tests: started as processes of their own, ended by closing their standard input."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENT = {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0", "NO_COLOR": "1", "COLUMNS": "100"}


def environment(**more: str) -> dict[str, str]:
    """Ours without what may point to another cluster."""
    kept = {k: v for k, v in os.environ.items() if k not in ("RAY_ADDRESS", "RAY_TMPDIR")}
    return {**kept, **ENVIRONMENT, **more}


@contextlib.contextmanager
def program(name: str, *arguments: object, env: dict[str, str] | None = None) -> Iterator[dict[str, Any]]:
    """Runs one of the programs of this folder and gives what it announces."""
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [sys.executable, str(HERE / name), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=env or environment(),
            start_new_session=True,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            line = next((text for text in child.stdout if text.startswith("{")), None)
            if line is None:
                errors.seek(0)
                raise AssertionError(f"{name} did not start: {errors.read().decode(errors='replace')[-2000:]}")
            yield json.loads(line)
        finally:
            child.stdin.close()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                pass
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait(10)
            child.stdout.close()


@contextlib.contextmanager
def cluster(nodes: int, *more: str, env: dict[str, str] | None = None) -> Iterator[dict[str, Any]]:
    """A cluster of raylets on this machine: its ``address`` and the pids of its ``raylets``, the head's first."""
    folder = tempfile.mkdtemp(prefix="rrd", dir="/tmp")  # short: Unix socket paths are limited to 107 bytes
    try:
        with program("cluster_program.py", folder, nodes, *more, env=env) as announced:
            announced["folder"] = folder
            yield announced
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def command(*arguments: object, prefix: tuple[str, ...] = (), env: dict[str, str] | None = None, timeout_s: float = 120) -> Any:
    """Runs ``rayrl-debug`` with these arguments to its end."""
    argv = [*prefix, sys.executable, "-m", "ray_rl_debug", *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=False, env=env or environment())


def state_of(pid: int) -> str | None:
    """State letter of a process, None when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Waits until something holds, and fails when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.05)


def processes_titled(part: str) -> list[int]:
    """Pids whose command line contains `part`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if part in (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                    found.append(int(entry.name))
    return found
