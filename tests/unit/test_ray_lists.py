"""Tables of ``ray list`` below a stack: who is pending, and which process runs the call."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.formats.ray_lists import read_lists
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Cause, Certainty, Report

DRIVER = """Thread 900 (idle): "MainThread"
    get_objects (ray/_private/worker.py:951)
    get (ray/_private/worker.py:2845)
    fit (trainer.py:20)

"""
ACTORS = """    ACTOR_ID                          CLASS_NAME  STATE             JOB_ID    NAME    NODE_ID  PID
 0  1a2b3c4d5e6f708192a3b4c501000000  Policy      ALIVE             01000000  p       9f1d     3411
 1  2a2b3c4d5e6f708192a3b4c501000000  Critic      PENDING_CREATION  01000000                      0
"""
TASKS = """    TASK_ID    ATTEMPT_NUMBER  NAME        STATE    TYPE          WORKER_PID
 0  16310a0f                0  Policy.fit  {0}  ACTOR_TASK         12881
"""


def _report(folder: Path, text: str) -> Report:
    (folder / "post.md").write_text(text)
    snapshot = load([folder / "post.md"]).snapshot
    assert snapshot is not None
    return diagnose(snapshot)


def test_cells_are_read_by_the_place_of_their_column() -> None:
    found = read_lists(ACTORS + "\n" + TASKS.format("RUNNING"))
    assert found is not None
    assert [(a.class_name, a.state, a.name, a.pid) for a in found.actors] == [
        ("Policy", "ALIVE", "p", 3411),
        ("Critic", "PENDING_CREATION", None, None),
    ]
    assert [(t.name, t.state, t.pid) for t in found.tasks] == [("Policy.fit", "RUNNING", 12881)]


def test_no_table_no_rows() -> None:
    assert read_lists("the ACTOR_ID is in the log\n 0 x y z\n") is None


def test_a_pending_actor_below_a_driver_that_waits(tmp_path: Path) -> None:
    first = _report(tmp_path, DRIVER + ACTORS).findings[0]
    assert (first.cause, first.certainty) == (Cause.RAY_PENDING, Certainty.POSSIBLE)
    assert [w.label for w in first.who] == ["Critic"]


def test_actors_that_live_accuse_nobody(tmp_path: Path) -> None:
    alive = "\n".join(ACTORS.splitlines()[:2])
    assert not _report(tmp_path, DRIVER + alive).findings


def test_a_running_task_is_what_to_dump_next(tmp_path: Path) -> None:
    assert _report(tmp_path, DRIVER + TASKS.format("RUNNING")).next_dumps[0].command == "py-spy dump --pid 12881"


def test_a_list_alone_is_no_hang(tmp_path: Path) -> None:
    report = _report(tmp_path, ACTORS)
    assert not report.findings
    assert report.next_dumps


STATUS = """======== Autoscaler status: 2026-11-21 10:00:00 ========
Resources
---------------------------------------------------------------
Usage:
 64.0/64.0 CPU
 8.0/8.0 GPU

Demands:
 {'GPU': 1.0, 'CPU': 2.0}: 4+ pending tasks/actors
 {'GPU': 1.0} * 8 (PACK): 1+ pending placement groups
"""


def test_demands_of_ray_status_are_what_a_driver_waits_for(tmp_path: Path) -> None:
    found = read_lists(STATUS)
    assert found is not None
    assert [(d.need, d.count, d.kind) for d in found.demands] == [("GPU: 1.0, CPU: 2.0", 4, "tasks/actors"), ("GPU: 1.0", 1, "placement groups")]
    first = _report(tmp_path, DRIVER + STATUS).findings[0]
    assert (first.cause, first.certainty) == (Cause.RAY_PENDING, Certainty.POSSIBLE)
    assert "4 or more pending tasks or actors need {GPU: 1.0, CPU: 2.0}" in first.summary


def test_a_status_without_demands_accuses_nobody(tmp_path: Path) -> None:
    calm = STATUS.split("Demands:", maxsplit=1)[0] + "Demands:\n (no resource demands)\n"
    assert read_lists(calm) is None
    assert not _report(tmp_path, DRIVER + calm).findings
