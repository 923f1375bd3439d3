"""Nodes that have Ray and nothing of ours: our code, msgspec and py-spy travel there for the capture."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.clusters import command, environment

from ray_rl_debug.model import gaps
from ray_rl_debug.model.codec import read_snapshot

pytestmark = pytest.mark.integration

HERE = Path(__file__).resolve().parent
OURS = ("ray_rl_debug", "_ray_rl_debug", "__editable__", "msgspec", "py_spy", "pystack", "uvloop", "nvidia_ml_py", "pynvml")
CHECK = "import ray, importlib.util as u; print([m for m in ('ray_rl_debug', 'msgspec') if u.find_spec(m)])"


@pytest.fixture(scope="module")
def bare() -> Iterator[tuple[str, dict[str, str]]]:
    """An interpreter without our packages, and its environment."""
    with tempfile.TemporaryDirectory(prefix="rrd", dir="/tmp") as name:
        packages, binaries = Path(name, "packages"), Path(name, "bin")
        packages.mkdir()
        binaries.mkdir()
        for source in dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))):
            for entry in Path(source).iterdir():
                if not entry.name.startswith(OURS) and entry.suffix != ".pth":
                    (packages / entry.name).symlink_to(entry)
        python = binaries / "python"
        python.symlink_to(os.path.realpath(sys.executable))
        env = environment(PYTHONPATH=str(packages), PATH=f"{binaries}:/usr/bin:/bin", PYTHONNOUSERSITE="1", HOME=name)
        done = subprocess.run([str(python), "-c", CHECK], capture_output=True, text=True, timeout=60, check=False, env=env, cwd=name)
        if done.stdout.strip() != "[]":
            pytest.skip(f"no interpreter without our packages can be made here: {done.stdout}{done.stderr[-300:]}")
        yield str(python), env


@contextlib.contextmanager
def running(python: str, env: dict[str, str], program: str, *arguments: object) -> Iterator[dict[str, Any]]:
    folder = tempfile.mkdtemp(prefix="rrd", dir="/tmp")
    argv = [python, str(HERE / program), *map(str, arguments)]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env, cwd=folder)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        line = next((line for line in child.stdout if line.startswith("{")), None)
        assert line is not None, f"{program} did not start"
        yield json.loads(line)
    finally:
        child.stdin.close()
        child.wait(30)
        child.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)


def test_code_and_py_spy_travel(bare: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    python, env = bare
    folder = tempfile.mkdtemp(prefix="rrd", dir="/tmp")
    left_before = set(Path(tempfile.gettempdir()).glob("rayrl-debug-*/py-spy"))
    try:
        with running(python, env, "cluster_program.py", folder, 2) as c, running(python, env, "job_program.py", c["address"], "Stage", 3) as job:
            done = command("snapshot", "--address", c["address"], "--samples", 2, "-o", tmp_path)
            assert done.returncode in (0, 1, 3), done.stderr
            snapshot = read_snapshot(tmp_path / "snapshot.json.gz")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    everything = (*snapshot.gaps, *(g for n in snapshot.nodes for g in n.gaps))
    assert not {g.id for g in everything} & {gaps.NODE_SILENT, gaps.AGENT_SILENT, gaps.PYSPY_MISSING, gaps.COLLECTOR_FAILED}, everything
    assert len(snapshot.nodes) == 2
    seen = {p.pid: p for n in snapshot.nodes for p in n.processes}
    for pid in (*job["pids"], job["driver"]):
        assert [s.source for s in seen[pid].samples] == ["py-spy", "py-spy"]
    assert set(Path(tempfile.gettempdir()).glob("rayrl-debug-*/py-spy")) <= left_before, "the travelled py-spy is removed"
