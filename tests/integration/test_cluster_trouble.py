"""Sick clusters: stopped and killed raylets, interrupted captures. A report comes in time and says what it could not see."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from integration.clusters import cluster, command, environment, program, state_of, wait_for

from ray_rl_debug.model import gaps
from ray_rl_debug.model.codec import read_snapshot

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("when", ["before", "during"])
def test_one_raylet_stopped_and_one_killed(when: str, tmp_path: Path) -> None:
    with cluster(3) as c, program("job_program.py", c["address"], "Stage", 6) as job:
        _, stopped, killed = c["raylets"]

        def harm() -> None:
            os.kill(stopped, signal.SIGSTOP)
            os.kill(killed, signal.SIGKILL)

        if when == "before":
            harm()
        started = time.monotonic()
        argv = [sys.executable, "-m", "ray_rl_debug", "snapshot", "--address", c["address"], "--timeout", "30", "--json", "-o", str(tmp_path)]
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        assert child.stderr is not None
        if when == "during":
            said = next(line for line in child.stderr if line.startswith(("collecting", "error")))
            assert "collecting on 3 of 3" in said
            harm()
        out, _ = child.communicate(timeout=60)
        took = time.monotonic() - started
        try:
            assert took < 2 + 30 + 8, "the sampling window, the deadline, and the start of the interpreter on a slow machine"
            assert json.loads(out)["schema"] == "rayrl-debug/report/1"
            snapshot = read_snapshot(tmp_path / "snapshot.json.gz")
            by_raylet = {p.pid: n for n in snapshot.nodes for p in n.processes if p.kind == "raylet"}
            names = {n.node_id: n.name for n in snapshot.nodes}
            whole = by_raylet[c["raylets"][0]]
            mine = [p for p in whole.processes if p.pid in job["pids"]]
            assert mine
            assert all(len(p.samples) == 3 for p in mine)
            of_node = {g.where.split("/")[0] for g in (*snapshot.gaps, *(g for n in snapshot.nodes for g in n.gaps)) if g.id in SILENCE}
            assert len(of_node) == 2, snapshot.gaps
            assert whole.name not in of_node
            assert by_raylet[stopped].name in of_node, names
            assert next(p for p in by_raylet[stopped].processes if p.pid == stopped).state == "T"
            assert all(state_of(pid) not in ("T", "t") for pid in job["pids"])
        finally:
            os.kill(stopped, signal.SIGCONT)


SILENCE = {gaps.NODE_SILENT, gaps.AGENT_SILENT, gaps.RAYLET_SILENT}


def test_the_raylet_of_this_very_machine_is_stopped(tmp_path: Path) -> None:
    with cluster(1) as c, program("job_program.py", c["address"], "Stage", 2) as job:
        os.kill(c["raylets"][0], signal.SIGSTOP)
        try:
            done = command("snapshot", "--address", c["address"], "--timeout", "20", "--samples", "2", "-o", tmp_path)
            assert done.returncode in (1, 3), done.stderr
            snapshot = read_snapshot(tmp_path / "snapshot.json.gz")
            assert gaps.AGENT_SILENT in {g.id for g in snapshot.gaps}
            seen = {p.pid: p for n in snapshot.nodes for p in n.processes}
            assert {job["driver"], *job["pids"]} <= set(seen)
            assert all(seen[pid].samples for pid in job["pids"])
        finally:
            os.kill(c["raylets"][0], signal.SIGCONT)


def hear_ctrl_c() -> None:
    """In a child: a shell lets programs in the background ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("way", ["cluster", "here"])
def test_ctrl_c_keeps_what_was_gathered(way: str, tmp_path: Path) -> None:
    with cluster(1) as c, program("job_program.py", c["address"], "Stage", 2) as job:
        where = ["--here", "--address", c["address"]] if way == "here" else ["--address", c["address"]]
        argv = [sys.executable, "-m", "ray_rl_debug", "snapshot", *where, "--samples", "60", "-o", str(tmp_path)]
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), preexec_fn=hear_ctrl_c)
        assert child.stderr is not None
        for line in child.stderr:
            if line.startswith(("collecting", "sample 2", "error")):
                break
        if way == "cluster":
            time.sleep(1.5)  # into the window, whose samples an agent takes without telling
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate(timeout=40)
        assert child.returncode == 130, errors
        assert "interrupted" in out
        snapshot = read_snapshot(tmp_path / "snapshot.json.gz")
        seen = {p.pid: p for n in snapshot.nodes for p in n.processes}
        assert all(1 <= len(seen[pid].samples) < 60 for pid in job["pids"])
        assert gaps.INTERRUPTED in {g.id for g in (*snapshot.gaps, *(g for n in snapshot.nodes for g in n.gaps))}
        wait_for(lambda: all(state_of(pid) in ("S", "R") for pid in job["pids"]))


def test_a_raylet_without_room_gets_no_agent_that_would_end_it(tmp_path: Path) -> None:
    with cluster(1) as c, program("job_program.py", c["address"], "Stage", 2) as job:
        (raylet,) = c["raylets"]
        used = len(list(Path(f"/proc/{raylet}/fd").iterdir()))
        _, hard = resource.prlimit(raylet, resource.RLIMIT_NOFILE)
        resource.prlimit(raylet, resource.RLIMIT_NOFILE, (used + 20, hard))
        before = {p.pid for p in psutil.Process(raylet).children()}
        done = command("snapshot", "--address", c["address"], "--timeout", "20", "--samples", "2", "-o", tmp_path)
        assert done.returncode in (1, 3), done.stderr
        assert state_of(raylet) in ("S", "R")
        assert {p.pid for p in psutil.Process(raylet).children()} <= before, "no worker was asked for"
        snapshot = read_snapshot(tmp_path / "snapshot.json.gz")
        (gap,) = [g for g in snapshot.gaps if g.id == gaps.AGENT_SILENT]
        assert "file descriptors left" in gap.reason
        seen = {p.pid: p for n in snapshot.nodes for p in n.processes}
        assert all(len(seen[pid].samples) >= 2 for pid in job["pids"])
