"""Captures without Ray: one node at a time, one process at a time, and several files as one report."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.clusters import cluster, command, environment, processes_titled, program, state_of, wait_for
from ports import free_port

from ray_rl_debug.model import gaps
from ray_rl_debug.model.codec import read_snapshot

pytestmark = pytest.mark.integration

HERE = Path(__file__).resolve().parent
MACHINE = ("unshare", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc")


def report_of(*arguments: object, prefix: tuple[str, ...] = ()) -> dict[str, Any]:
    done = command(*arguments, "--json", prefix=prefix)
    assert done.returncode in (0, 1, 3), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@contextlib.contextmanager
def machine(name: str, rank: int, port: int, fifo: Path) -> Iterator[int]:
    """A rank alone on what is to it a machine of its own; the pid, as seen from here, of the machine's first process."""
    run = 'hostname "$0" && exec "$@"'
    argv = [*MACHINE, "sh", "-c", run, name, sys.executable, str(HERE / "rank_program.py"), str(port), str(fifo)]
    env = environment(RANK=str(rank), WORLD_SIZE="2", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    outer = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env)
    assert outer.stdout is not None
    try:
        wait_for(lambda: Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split())
        yield int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()[0])
    finally:
        outer.send_signal(signal.SIGKILL)
        outer.wait(10)
        outer.stdout.close()


def inside(pid: int) -> tuple[str, ...]:
    return ("nsenter", f"--target={pid}", "--pid", "--uts", "--mount")


def test_ranks_of_two_machines_captured_one_by_one(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    if os.geteuid() != 0 or subprocess.run([*MACHINE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs root and namespaces, for machines of their own")
    fifo = tmp_path / "answers"
    os.mkfifo(fifo)
    port = free_port()
    with machine("gpu1", 0, port, fifo) as first, machine("gpu2", 1, port, fifo) as second:
        wait_for(lambda: b"rank_program" in Path(f"/proc/{second}/cmdline").read_bytes(), 60)
        wait_for(lambda: _opens_fifo(second), 120)
        for name, pid in (("gpu1", first), ("gpu2", second)):
            report_of("snapshot", "--here", "--pid", 1, "--samples", 2, "-o", tmp_path / name, prefix=inside(pid))
        assert state_of(first) == state_of(second) == "S"
    files = [tmp_path / name / "snapshot.json.gz" for name in ("gpu1", "gpu2")]
    for name, file in zip(("gpu1", "gpu2"), files, strict=True):
        (node,) = read_snapshot(file).nodes
        assert (node.name, [p.pid for p in node.processes]) == (name, [1])
    report = report_of("report", *files)
    assert [n["name"] for n in report["nodes"]] == ["gpu1", "gpu2"]
    (world,) = report["worlds"]
    assert (world["size"], world["ranks"], world["missing"]) == (2, [0, 1], [])
    assert report["verdict"]["state"] == "hang"
    first_finding = report["findings"][0]
    assert [(w["node"], w["rank"]) for w in first_finding["who"]] == [("gpu2", 1)]
    assert first_finding["cause"] in ("straggler", "blocked-io")
    assert gaps.NO_RAY_TABLES_IN_FILE in {g["id"] for g in report["gaps"]}


def _opens_fifo(pid: int) -> bool:
    """Is it in the open call that never returns?"""
    try:
        return "wait_for_partner" in Path(f"/proc/{pid}/wchan").read_text() or _stands_in(pid, "score_answers")
    except OSError:
        return False


def _stands_in(pid: int, function: str) -> bool:
    from ray_rl_debug.collect.pyspy import find_pyspy

    binary = find_pyspy()
    assert binary is not None
    done = subprocess.run([binary, "dump", "--pid", str(pid)], capture_output=True, text=True, timeout=30, check=False)
    return function in done.stdout


def test_a_look_while_ray_is_stuck_joins_the_tables_of_an_earlier_one(tmp_path: Path) -> None:
    with cluster(1) as c, program("job_program.py", c["address"], "Stage", 2) as job:
        report_of("snapshot", "--address", c["address"], "--samples", 1, "-o", tmp_path / "first")
        (gcs,) = [pid for pid in processes_titled("gcs_server") if str(c["folder"]).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()]
        for pid in (job["pids"][0], gcs):
            os.kill(pid, signal.SIGSTOP)
        try:
            report_of("snapshot", "--here", "--address", c["address"], "--samples", 2, "-o", tmp_path / "later")
        finally:
            for pid in (job["pids"][0], gcs):
                os.kill(pid, signal.SIGCONT)
    files = [tmp_path / name / "snapshot.json.gz" for name in ("later", "first")]
    later = read_snapshot(files[0])
    assert later.ray is None
    assert gaps.RAY_TABLES in {g.id for g in later.gaps}
    report = report_of("report", *files)
    (node,) = report["nodes"]
    assert node["node_id"] == later.nodes[0].node_id is not None
    (older,) = [g for g in report["gaps"] if g["what"] == "an older capture of this node"]
    assert older["where"] == node["name"]
    assert gaps.NO_RAY_TABLES_IN_FILE not in {g["id"] for g in report["gaps"]}, "the other file has them"
    assert report["verdict"]["state"] == "hang"
    first = report["findings"][0]
    assert first["cause"] == "process-stopped"
    assert [w["pid"] for w in first["who"]] == [job["pids"][0]]
    assert [w["actor"] for w in first["who"]] == ["Stage_0"], "the name stands in the tables of the first file"


PARENT = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE); print(p.pid, flush=True); p.wait()"


@pytest.mark.parametrize("here", [("--here",), ()])
def test_one_process_and_its_descendants(here: tuple[str, ...], tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        try:
            child = int(parent.stdout.readline())
            report_of("snapshot", *here, "--pid", parent.pid, "--samples", 1, "--once", "-o", tmp_path)
        finally:
            parent.kill()
    (node,) = read_snapshot(tmp_path / "snapshot.json.gz").nodes
    assert {p.pid: p.kind for p in node.processes} == {parent.pid: "named", child: "child"}
    assert all(p.samples for p in node.processes)
