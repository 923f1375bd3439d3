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


SUMMARY = """======== Tasks Summary: 2026-11-21 10:00:00.123456 ========
Stats:
------------------------------------
total_actor_scheduled: 9
total_actor_tasks: 340
total_tasks: 2


Table (group by func_name):
------------------------------------
    FUNC_OR_CLASS_NAME        STATE_COUNTS     TYPE
0   Trainer.fit               RUNNING: 1       ACTOR_TASK
1   RolloutWorker.__init__    FINISHED: 8      ACTOR_CREATION_TASK
2   RolloutWorker.generate    FINISHED: 320    ACTOR_TASK
                              RUNNING: 8
3   score                     FAILED: 1        NORMAL_TASK
"""
ONE_LINE = "    FUNC_OR_CLASS_NAME       STATE_COUNTS               TYPE\n0   RolloutWorker.generate   FINISHED: 320, RUNNING: 8  ACTOR_TASK\n"
STUCK = "    FUNC_OR_CLASS_NAME    STATE_COUNTS                  TYPE\n0   score                 PENDING_NODE_ASSIGNMENT: 4    NORMAL_TASK\n"


def test_a_summary_counts_the_states_of_each_function() -> None:
    found = read_lists(SUMMARY)
    assert found is not None
    assert [(c.name, c.kind, c.states) for c in found.task_counts] == [
        ("Trainer.fit", "ACTOR_TASK", {"RUNNING": 1}),
        ("RolloutWorker.__init__", "ACTOR_CREATION_TASK", {"FINISHED": 8}),
        ("RolloutWorker.generate", "ACTOR_TASK", {"FINISHED": 320, "RUNNING": 8}),
        ("score", "NORMAL_TASK", {"FAILED": 1}),
    ]
    one_line = read_lists(ONE_LINE)
    assert one_line is not None and one_line.task_counts[0].states == {"FINISHED": 320, "RUNNING": 8}


def test_running_calls_of_a_summary_are_what_a_driver_waits_for(tmp_path: Path) -> None:
    """Not the driver's own call, which stands on its stack; whose processes they are, only a list tells."""
    report = _report(tmp_path, DRIVER + SUMMARY)
    assert not report.findings
    assert report.next_dumps[0].what.startswith("the processes that run RolloutWorker.generate (8): ")
    assert report.next_dumps[0].command == "ray list tasks --filter state=RUNNING --detail"


def test_a_summary_alone_says_whom_to_look_at(tmp_path: Path) -> None:
    report = _report(tmp_path, SUMMARY)
    assert not report.findings
    assert "Trainer.fit (1), RolloutWorker.generate (8)" in report.next_dumps[0].what


def test_calls_of_a_summary_that_no_node_takes(tmp_path: Path) -> None:
    first = _report(tmp_path, DRIVER + STUCK).findings[0]
    assert (first.cause, first.certainty, first.who[0].label) == (Cause.RAY_PENDING, Certainty.POSSIBLE, "score")
    assert "4 of score are PENDING_NODE_ASSIGNMENT" in first.summary
    assert not _report(tmp_path, DRIVER + STUCK + "1   work                  RUNNING: 2                    NORMAL_TASK\n").findings
