"""The timeline of a run on a real cluster that got stuck: all ranks, phases, arrows, the stuck task open to the end, the verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from integration.clusters import cluster, command, program
from trace_engine import NoEngine, TraceEngine, assert_same, engine_folder
from traces import ReadTrace, read_back

from ray_rl_debug.timeline.ray_export import export

pytestmark = pytest.mark.integration

RANKS, STEPS = 3, 3
STUCK = "update_actor"


@pytest.mark.timeout(400)
def test_a_stuck_run(tmp_path: Path) -> None:
    with cluster(2) as c, program("training_program.py", c["address"], RANKS, STEPS) as run:
        done = command("timeline", "--address", c["address"], "--samples", "2", "-o", tmp_path / "run.pftrace", "--json")
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        read = read_back((tmp_path / "run.pftrace").read_bytes())
        look_at_tasks(read, run["pids"])
        (driver,) = {i.track for i in read.instants if i.name == f"submit {STUCK}"}
        assert f"pid {run['driver']}" in " ".join(d.description for d in read.tracks.values() if d.name == driver[3])
        assert len([r for r in export(c["address"]) if r["name"] == STUCK]) == RANKS * STEPS - 1  # Ray's own knows nothing of the stuck one
        look_at_tables(document, read)
        saved = command("snapshot", "--address", c["address"], "--samples", "2", "--interval", "0.2", "-o", tmp_path / "hang")
        assert (tmp_path / "hang" / "run.pftrace").is_file(), saved.stderr
        assert "phases by step" in (tmp_path / "hang" / "report.txt").read_text()
        assert "Phases by step" in (tmp_path / "hang" / "report.html").read_text()
        again = command("timeline", tmp_path / "hang", "-o", tmp_path / "again.pftrace", "-q")
        assert again.returncode == 0, again.stderr
        assert len(read_back((tmp_path / "again.pftrace").read_bytes()).named(STUCK)) == RANKS * STEPS
    same_in_the_real_processor(tmp_path / "run.pftrace", read, document)


def look_at_tasks(read: ReadTrace, pids: list[int]) -> None:
    updates = [s for s in read.named(STUCK) if s.track[-1] == "tasks"]
    assert len(updates) == RANKS * STEPS
    (stuck,) = [s for s in updates if s.end_ns is None]
    assert f"pid {pids[-1]}" in " ".join(d.description for d in read.tracks.values() if d.name == stuck.track[3])
    submits = {i.flows_out[0]: i for i in read.instants if i.name == f"submit {STUCK}"}
    assert len(submits) == RANKS * STEPS
    for update in updates:
        assert submits[update.flows_in[0]].start_ns <= update.start_ns
    assert [s.end_ns for s in read.slices if s.track == ("cluster", "steps")][-1] is None
    assert {s.track[3] for s in read.slices if s.track[-1] == "stack (sampled)"} >= {s.track[3] for s in updates}
    assert any(name.startswith("load") for path, _, _ in read.counts for name in path[-1:])
    assert [i.name for i in read.instants if i.track == ("cluster", "snapshots")]


def look_at_tables(document: dict[str, object], read: ReadTrace) -> None:
    trace, tables = document["trace"], document["tables"]
    assert isinstance(trace, dict)
    assert isinstance(tables, dict)
    assert (trace["slices"], trace["dropped"]) == (len(read.slices), 0)
    assert trace["arrows"] == sum(len(s.flows_in) for s in read.slices)
    last = [r for r in tables["phases"] if r["phase"] == "update"][-1]
    assert (last["step"], last["ranks"], last["unfinished"]) == (STEPS, RANKS, 1)
    assert tables["since_progress_s"] > 0
    assert any(q["task"] == f"WorkerDict.{STUCK}" and q["count"] == RANKS * STEPS for q in tables["queues"])


def same_in_the_real_processor(path: Path, read: ReadTrace, document: dict[str, object]) -> None:
    """Everything that was written is there, with the same times, and nothing is complained about."""
    try:
        folder = engine_folder()
    except NoEngine as e:
        pytest.skip(f"all but the real trace processor was checked: {e}")
    with TraceEngine(path.read_bytes(), folder) as engine:
        assert_same(engine, read)
        trace = document["trace"]
        assert isinstance(trace, dict)
        assert engine.value("select count(*) from flow") == trace["arrows"]
        assert trace["counts"] == len(read.counts)
