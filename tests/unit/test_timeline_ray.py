"""Ray's task events and ray.timeline() as slices, arrows, phases and steps. Expected values are written out."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.ray_state.task_events import TaskEvent, TaskEvents
from ray_rl_debug.timeline.layout import Layout
from ray_rl_debug.timeline.model import Batch, Instant, Span
from ray_rl_debug.timeline.sources import ray_tasks
from ray_rl_debug.timeline.sources.ray_owners import Owners
from ray_rl_debug.timeline.sources.ray_tasks import flow_id, last_progress_ns, narrow, queue_times, ray_task_source
from ray_rl_debug.timeline.sources.ray_timeline import RayTimelineSource
from ray_rl_debug.timeline.steps import Run, find_steps, merge_runs

S = 1_000_000_000
NODE = "ab" * 28


def times(submit: float, run: float | None = None, end: float | None = None, **more: float) -> dict[str, int]:
    found = {"PENDING_ARGS_AVAIL": submit, "RUNNING": run, "FINISHED": end, **more}
    return {k: int(v * S) for k, v in found.items() if v is not None}


def call(task_id: str, method: str, when: dict[str, int], *, pid: int = 100, parent: str | None = "driver", job: str = "01") -> TaskEvent:
    return TaskEvent(
        task_id=task_id,
        name=f"Trainer.{method}",
        kind="ACTOR_TASK",
        job_id=job,
        parent_task_id=parent,
        actor_id="a" * 8,
        node_id=NODE,
        pid=pid,
        times_ns=when,
    )


DRIVER = TaskEvent(task_id="driver", name="driver", kind="DRIVER_TASK", job_id="01", node_id=NODE, pid=1, times_ns={"RUNNING": S})


def source(*events: TaskEvent, dropped: int = 0) -> list[Batch]:
    return list(ray_task_source(TaskEvents(read_time_s=100.0, events=(DRIVER, *events), dropped=dropped), Layout({}, {}, {})).batches())


def row(batches: list[Batch], name: str, pid: int | None = None) -> list[Span]:
    found = [b for b in batches if b.track.path[-1] == name and (pid is None or any(f"(pid {pid})" in p for p in b.track.path))]
    return [i for b in found for i in b.items if isinstance(i, Span)]


def test_a_task_that_never_ended_is_open_and_says_where_it_waits() -> None:
    batches = source(call("t1", "update_actor", times(10, 11, RUNNING_IN_RAY_GET=12)))
    assert [(s.name, s.start_ns, s.end_ns) for s in row(batches, "tasks", 100)] == [("update_actor", 11 * S, None), ("ray.get", 12 * S, None)]
    assert [(s.name, s.end_ns, s.step) for s in row(batches, "phase", 100)] == [("update", None, 1)]


def test_arrows_go_from_the_submitting_process_to_the_run() -> None:
    batches = source(call("t1", "update_actor", times(10, 12, 20)))
    (submit,) = [i for b in batches for i in b.items if isinstance(i, Instant)]
    assert submit.at_ns == 10 * S
    assert submit.flows_out == row(batches, "tasks", 100)[0].flows_in == (flow_id("t1", 0),)
    (where,) = [b.track.path for b in batches if submit in b.items]
    assert where[-2:] == ("driver (pid 1)", "submits")
    assert dict(row(batches, "tasks", 100)[0].args)["queued_ms"] == 2000.0


def test_a_task_that_was_never_started_waits_to_the_end_or_to_its_jobs_end() -> None:
    waiting = call("t1", "reward", times(10, PENDING_NODE_ASSIGNMENT=11))
    assert [(s.name, s.start_ns, s.end_ns, dict(s.args)["state"]) for s in row(source(waiting), "waiting tasks")] == [
        ("waits: Trainer.reward", 10 * S, None, "PENDING_NODE_ASSIGNMENT")
    ]
    ended = TaskEvent(task_id="d2", name="driver", kind="DRIVER_TASK", job_id="01", node_id=NODE, pid=1, times_ns={"RUNNING": S, "FINISHED": 50 * S})
    (span,) = row(list(ray_task_source(TaskEvents(read_time_s=1.0, events=(ended, waiting)), Layout({}, {}, {})).batches()), "waiting tasks")
    assert span.end_ns == 50 * S


def test_calls_that_run_at_once_each_keep_their_own_length() -> None:
    batches = source(call("t1", "generate", times(1, 2, 10)), call("t2", "generate", times(1, 3, 12)))
    assert [b.track.kind for b in batches if b.track.path[-1] == "tasks" and b.items and isinstance(b.items[0], Span)][-1] == "async"
    assert [(s.start_ns, s.end_ns) for s in row(batches, "tasks", 100)] == [(2 * S, 10 * S), (3 * S, 12 * S)]
    assert [(s.start_ns, s.end_ns) for s in row(batches, "phase", 100)] == [(2 * S, 12 * S)]  # counted once


def test_a_task_whose_beginning_ray_lost_is_counted_and_not_shown_as_waiting() -> None:
    made = ray_task_source(TaskEvents(read_time_s=9.0, events=(call("t1", "reward", times(1, None, 3)),)), Layout({}, {}, {}))
    assert row(list(made.batches()), "waiting tasks") == []
    assert [(g.what, g.reason) for g in made.gaps] == [("the beginning of 1 tasks", "Ray kept only their end")]


def test_owner_and_executor_on_nodes_whose_clocks_are_apart() -> None:
    """The executor's node is five seconds ahead; by the raw times the task would end before it began."""
    other = "cd" * 28
    times_ns = {"PENDING_ARGS_AVAIL": 10 * S, "RUNNING": 16 * S, "FINISHED": 14 * S}
    task = msgspec.structs.replace(call("t", "update_actor", times_ns, pid=9), node_id=other)
    events = TaskEvents(read_time_s=99.0, events=(task,))
    owners = Owners(events, {"01": (NODE, 1)}, lambda node, at: at - 5 * S if node == other else at)
    batches = list(ray_task_source(events, Layout({}, {}, {}), owners).batches())
    assert [(s.start_ns, s.end_ns) for s in row(batches, "tasks", 9)] == [(16 * S, 19 * S)]
    assert queue_times(events, owners) == {"Trainer.update_actor": [1.0]}
    assert last_progress_ns(events, owners) == (14 * S, "Trainer.update_actor")
    assert [(s.start_ns, s.end_ns) for s in row(batches, "steps")] == [(11 * S, 14 * S)]
    (where,) = [(b.track, i.at_ns) for b in batches for i in b.items if isinstance(i, Instant)]
    assert (where[0].path[-2:], where[0].clock, where[1]) == (("driver (pid 1)", "submits"), f"wall:node {NODE[:8]}", 10 * S)
    unknown = Owners(events, {"01": (NODE, 1)})
    assert unknown.ended_ns(task) == 16 * S  # never before it began


def test_beyond_the_cap_the_latest_and_the_unfinished_keep_their_arrows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_tasks, "MAX_ARROWS", 3)
    calls = [call("open", "f", times(0, 1)), *(call(f"t{k}", "f", times(k, k + 1, k + 1.5)) for k in range(10, 20))]
    made = ray_task_source(TaskEvents(read_time_s=99.0, events=(DRIVER, *calls)), Layout({}, {}, {}))
    with_arrow = [dict(s.args)["task_id"] for s in row(list(made.batches()), "tasks", 100) if s.flows_in]
    assert sorted(map(str, with_arrow)) == ["open", "t18", "t19"]
    assert [g.what for g in made.gaps] == ["8 of 11 arrows"]


def test_steps_end_with_the_weight_sync() -> None:
    events = []
    for step in range(3):
        base = 100 * step
        events += [
            call(f"g{step}", "generate_sequences", times(base, base + 10, base + 20)),
            call(f"u{step}", "update_actor", times(base, base + 30, base + 40)),
            call(f"w{step}", "update_weights", times(base, base + 50, base + 60)),
        ]
    assert [(s.name, s.start_ns // S, (s.end_ns or 0) // S) for s in row(source(*events), "steps")] == [
        ("step 1", 10, 60),
        ("step 2", 60, 160),
        ("step 3", 160, 260),
    ]


def test_of_several_jobs_the_busiest_makes_the_steps() -> None:
    mine = [call("u", "update_actor", times(0, 1, 2)), call("w", "update_weights", times(0, 3, 4)), call("x", "update_actor", times(0, 5, 6))]
    other = call("o", "update_weights", times(0, 2, 9), pid=200, job="02")
    made = ray_task_source(TaskEvents(read_time_s=99.0, events=(DRIVER, *mine, other)), Layout({}, {}, {}))
    batches = list(made.batches())
    assert [s.step for s in row(batches, "phase", 100)] == [1, 1, 2]
    assert [(s.name, s.step) for s in row(batches, "phase", 200)] == [("weight_sync", None)]
    assert [(g.what, g.remedy) for g in made.gaps] == [("steps of job 02", "--job 02")]


def test_a_step_that_is_stuck_is_open() -> None:
    batches = source(call("u", "update_actor", times(0, 1, 2)), call("w", "update_weights", times(0, 3, 4)), call("x", "update_actor", times(0, 5)))
    assert [(s.name, s.end_ns) for s in row(batches, "steps")] == [("step 1", 4 * S), ("step 2", None)]


@pytest.mark.parametrize("name", ["RayRlDebugAgent.collect", "rayrl_debug_0.1.0_18371daeaed7c895:RayRlDebugAgent.__init__"])
def test_our_own_tasks_are_left_out_and_what_ray_dropped_is_told(name: str) -> None:
    own = TaskEvent(task_id="o", name=name, kind="ACTOR_TASK", job_id="09", actor_id="z", node_id=NODE, pid=7, times_ns=times(1, 2, 3))
    made = ray_task_source(TaskEvents(read_time_s=9.0, events=(DRIVER, own), dropped=12), Layout({}, {}, {}))
    assert not [b for b in made.batches() if any("pid 7" in p for p in b.track.path)]
    assert [g.what for g in made.gaps] == ["12 tasks"]
    assert last_progress_ns(TaskEvents(read_time_s=9.0, events=(DRIVER, own))) is None


def test_queue_times_progress_and_jobs() -> None:
    events = TaskEvents(
        read_time_s=9.0, events=(call("a", "f", times(1, 3, 9)), call("b", "f", times(2, 3.5)), call("c", "g", times(1, 2, 4), job="02"))
    )
    assert queue_times(events) == {"Trainer.f": [2.0, 1.5], "Trainer.g": [1.0]}
    assert last_progress_ns(events) == (9 * S, "Trainer.f")
    assert [e.task_id for e in narrow(events, "02").events] == ["c"]


def test_runs_of_one_phase_that_touch_become_one() -> None:
    assert merge_runs([(1, 5, "a"), (5, 7, "a"), (8, 9, "a"), (2, None, "b"), (3, 4, "b")]) == [Run(1, 7, "a"), Run(2, None, "b"), Run(8, 9, "a")]


def test_steps_without_weight_sync_end_with_their_update() -> None:
    runs = [Run(0, 5, "rollout"), Run(5, 9, "update"), Run(9, 14, "rollout"), Run(14, 20, "update")]
    assert find_steps(runs).ends_ns == (9, 20)
    assert find_steps(runs).at(9) == 2


def ray_row(name: str, ts: float, dur: float, cat: str | None = None, worker: str = "worker:aa11", task: str = "t") -> dict[str, object]:
    short, args = name.rsplit(".", 1)[-1], {"task_id": task}
    return {"cat": cat or f"task::{name}", "name": short, "pid": "10.0.0.1", "tid": worker, "ts": ts, "dur": dur, "ph": "X", "args": args}


def test_ray_timeline_parts_lie_in_their_call(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    rows = [
        ray_row("Trainer.update_actor", 1_000_000.0, 500_000.0),
        ray_row("task:execute", 1_100_000.0, 100_000.0, "task:execute"),
        {"ph": "M", "name": "process_name"},
        {"ph": "X", "name": "foreign", "pid": 3, "tid": 4, "ts": 1, "dur": 1, "cat": "x"},
    ]
    path.write_text(json.dumps(rows))
    made = RayTimelineSource("timeline.json", None, Layout({}, {}, {}), path)
    tasks = [b for b in made.batches() if b.track.path[-1] == "tasks"]
    assert [[(s.name, s.start_ns, s.end_ns) for s in b.items if isinstance(s, Span)] for b in tasks] == [
        [("update_actor", S, 1_500_000_000), ("task:execute", 1_100_000_000, 1_200_000_000)]
    ]
    assert tasks[0].track.path == ("cluster", "node 10.0.0.1", "Trainer", "Trainer aa11", "tasks")
    assert [g.reason for g in made.gaps] == ["1 events are not Ray's and were left out"]
