"""Ray's task events: a slice per task that ran or still runs, what waits and was never started, arrows from submission to run, phases, steps."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.phase import phase_of_name
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Gap
from ray_rl_debug.ray_state.task_events import TaskEvent, TaskEvents
from ray_rl_debug.timeline.layout import Layout, TrackPlace
from ray_rl_debug.timeline.model import CLUSTER, Args, Batch, Held, Instant, Span, Track
from ray_rl_debug.timeline.sources.ray_owners import Key, Owners, ended_raw_ns, is_ours, submitted_ns
from ray_rl_debug.timeline.steps import Run, Steps, find_steps, merge_runs

ORIGIN = "Ray task events"
MAX_ARROWS = 10_000
"""Perfetto draws each one; unfinished tasks keep theirs, then the latest."""
MAX_WAITING = 1_000


def ray_task_source(events: TaskEvents, layout: Layout, owners: Owners | None = None) -> Held:
    """Tasks, submissions, phases per process and the steps they make."""
    owners = owners or Owners(events)
    own = {e.job_id for e in events.events if is_ours(e)}
    kept = [e for e in events.events if not is_ours(e) and not (e.kind == "DRIVER_TASK" and e.job_id in own)]
    found: list[Gap] = []
    if events.dropped:
        found.append(Gap(id=gaps.TRUNCATED, where="cluster", what=f"{events.dropped} tasks", reason="Ray had dropped them"))
    by_process: dict[Key, list[TaskEvent]] = defaultdict(list)
    for event in kept:
        if "RUNNING" in event.times_ns and event.pid:
            by_process[(event.node_id, event.pid)].append(event)
    places = {key: layout.process(*key, role=_class_of(tasks[0]), label=_class_of(tasks[0])) for key, tasks in by_process.items()}
    runs = {key: merge_runs([(t.times_ns["RUNNING"], owners.ended_ns(t), p) for t in tasks if (p := _phase(t))]) for key, tasks in by_process.items()}
    jobs = {key: tasks[0].job_id for key, tasks in by_process.items()}
    main = _main_job(runs, jobs, found)
    every = [_in_reference(r, key[0], owners) for key, of_process in runs.items() if jobs[key] == main for r in of_process]
    steps = find_steps(every)
    arrows = _arrows(kept, found)
    batches: list[Batch] = []
    for key, tasks in by_process.items():
        batches += _process_batches(key, places[key], tasks, runs[key], steps if jobs[key] == main else None, arrows, owners)
    batches += _submissions(kept, places, layout, arrows, owners)
    batches += _waiting(kept, owners, found)
    if every:
        batches += _steps(steps, every)
    return Held(ORIGIN, batches, gaps=found)


def _main_job(runs: Mapping[Key, Sequence[Run]], jobs: Mapping[Key, str | None], found: list[Gap]) -> str | None:
    """The job with the most phases: the steps of several jobs have nothing to do with each other."""
    counts: Counter[str | None] = Counter()
    for key, of_process in runs.items():
        if of_process:
            counts[jobs[key]] += len(of_process)
    ordered = counts.most_common()
    for job, _ in ordered[1:]:
        found.append(Gap(id=gaps.TRUNCATED, where="cluster", what=f"steps of job {job}", reason="several jobs run here", remedy=f"--job {job}"))
    return ordered[0][0] if ordered else None


def _in_reference(run: Run, node: str | None, owners: Owners) -> Run:
    end = None if run.end_ns is None else owners.to_reference(node, run.end_ns)
    return Run(owners.to_reference(node, run.start_ns), end, run.phase)


def flow_id(task_id: str, attempt: int) -> int:
    """One arrow's number, the same in every process and every run of ours."""
    return int.from_bytes(hashlib.blake2b(f"{task_id}/{attempt}".encode(), digest_size=8).digest(), "little")


def _method(event: TaskEvent) -> str:
    return event.name.rsplit(".", 1)[-1]


def _class_of(event: TaskEvent) -> str:
    """Class of an actor's task: ``prefixWorkerDict_0:1:WorkerDict.__init__`` → ``WorkerDict``; ``tasks`` for plain functions."""
    if event.kind == "DRIVER_TASK":
        return "driver"
    if event.actor_id is None and event.kind != "ACTOR_CREATION_TASK":
        return "tasks"
    return event.name.rpartition(".")[0].rsplit(":", 1)[-1].rsplit(".", 1)[-1] or "actor"


def _phase(event: TaskEvent) -> str | None:
    if event.kind == "ACTOR_CREATION_TASK":
        return "init"
    return phase_of_name(_method(event)) if event.kind == "ACTOR_TASK" else None


def _arrows(events: Sequence[TaskEvent], found: list[Gap]) -> frozenset[int]:
    drawn = [e for e in events if "RUNNING" in e.times_ns and e.kind != "DRIVER_TASK"]
    if len(drawn) > MAX_ARROWS:
        what = f"{len(drawn) - MAX_ARROWS:,} of {len(drawn):,} arrows"
        found.append(Gap(id=gaps.TRUNCATED, where="cluster", what=what, reason="too many to draw; unfinished and latest tasks have theirs"))
        drawn.sort(key=lambda e: (ended_raw_ns(e) is None, e.times_ns["RUNNING"]))
        drawn = drawn[-MAX_ARROWS:]
    return frozenset(flow_id(e.task_id, e.attempt) for e in drawn)


def _process_batches(
    key: Key, place: TrackPlace, tasks: list[TaskEvent], runs: list[Run], steps: Steps | None, arrows: frozenset[int], owners: Owners
) -> Iterator[Batch]:
    concurrent = _overlap([Run(t.times_ns["RUNNING"], owners.ended_ns(t), "") for t in tasks])
    track = Track((*place.path, "tasks"), place.clock, "async" if concurrent else "span", ORIGIN)
    groups = [_slices(t, arrows, owners) for t in tasks]
    if concurrent:
        yield from (Batch(track, g) for g in sorted(groups, key=lambda g: g[0].start_ns))
    else:
        yield Batch(track, [s for g in groups for s in g])
    if runs:
        phase_track = Track((*place.path, "phase"), place.clock, "async" if _overlap(runs) else "span", ORIGIN, rank=place.label)
        numbers = [steps.at(owners.to_reference(key[0], r.start_ns)) if steps is not None else None for r in runs]
        spans = [
            Span(r.start_ns, r.end_ns, r.phase, "phase", (("step", n),) if n is not None else (), r.phase, n)
            for r, n in zip(runs, numbers, strict=True)
        ]
        yield from ([Batch(phase_track, [s]) for s in spans] if phase_track.kind == "async" else [Batch(phase_track, spans)])


def _slices(event: TaskEvent, arrows: frozenset[int], owners: Owners) -> list[Span]:
    start, end, queued = event.times_ns["RUNNING"], owners.ended_ns(event), owners.queued_ns(event)
    args: list[tuple[str, str | int | float | bool]] = [("task", event.name), ("task_id", event.task_id)]
    if queued is not None:
        args.append(("queued_ms", round(queued / 1e6, 3)))
    if event.attempt:
        args.append(("attempt", event.attempt))
    if "FAILED" in event.times_ns:
        args.append(("failed", event.error or True))
    flow = flow_id(event.task_id, event.attempt)
    arrow = (flow,) if flow in arrows else ()
    spans = [Span(start, end, _method(event), _phase(event) or "task", tuple(args), flows_in=arrow)]
    if end is None:
        for state, name in (("RUNNING_IN_RAY_GET", "ray.get"), ("RUNNING_IN_RAY_WAIT", "ray.wait")):
            since = event.times_ns.get(state)
            if since is not None and since >= start:
                spans.append(Span(since, None, name, "wait"))
    return spans


def _overlap(runs: Sequence[Run]) -> bool:
    latest: float = 0
    for run in sorted(runs, key=lambda r: r.start_ns):
        if run.start_ns < latest:
            return True
        latest = float("inf") if run.end_ns is None else max(latest, run.end_ns)
    return False


def _submissions(
    events: Sequence[TaskEvent], places: dict[Key, TrackPlace], layout: Layout, arrows: frozenset[int], owners: Owners
) -> Iterator[Batch]:
    """An instant in the submitting process for every task; those of unknown parents stand with the cluster."""
    found: dict[Track, list[Instant]] = defaultdict(list)
    for event in events:
        at = submitted_ns(event)
        if at is None or event.kind == "DRIVER_TASK":
            continue
        key = owners.key(event)
        place = (places.get(key) or layout.process(*key, role="driver", label="driver")) if key else None
        if place is not None:
            track = Track((*place.path, "submits"), place.clock, "instant", ORIGIN)
        else:
            track = Track((CLUSTER, "submits"), kind="instant", origin=ORIGIN)
        flow = flow_id(event.task_id, event.attempt)
        args: Args = (("task", event.name), ("task_id", event.task_id))
        found[track].append(Instant(at, f"submit {_method(event)}", "submit", args, flows_out=(flow,) if flow in arrows else ()))
    for track, items in found.items():
        yield Batch(track, items)


def _waiting(events: Sequence[TaskEvent], owners: Owners, found: list[Gap]) -> Iterator[Batch]:
    """Tasks that were submitted and never began: open until the job ended."""
    track = Track((CLUSTER, "waiting tasks"), kind="async", origin=ORIGIN)
    ends = {e.job_id: t for e in events if e.kind == "DRIVER_TASK" and (t := ended_raw_ns(e)) is not None}
    never = [e for e in events if "RUNNING" not in e.times_ns and e.times_ns and e.kind != "DRIVER_TASK"]
    lost = sum("FINISHED" in e.times_ns for e in never)
    if lost:
        found.append(Gap(id=gaps.TRUNCATED, where="cluster", what=f"the beginning of {lost} tasks", reason="Ray kept only their end"))
    waiting = sorted((e for e in never if "FINISHED" not in e.times_ns), key=lambda e: min(e.times_ns.values()))
    if len(waiting) > MAX_WAITING:
        what = f"{len(waiting) - MAX_WAITING} of {len(waiting)} waiting tasks"
        found.append(Gap(id=gaps.TRUNCATED, where="cluster", what=what, reason="too many to draw"))
    for event in waiting[:MAX_WAITING]:
        state = max(event.times_ns, key=lambda s: event.times_ns[s])
        args: Args = (("task", event.name), ("task_id", event.task_id), ("state", state))
        node = (owners.key(event) or (None, None))[0]
        start, end = min(event.times_ns.values()), ended_raw_ns(event) or ends.get(event.job_id)
        yield Batch(
            track,
            [Span(owners.to_reference(node, start), None if end is None else owners.to_reference(node, end), f"waits: {event.name}", "wait", args)],
        )


def _steps(steps: Steps, runs: Sequence[Run]) -> Iterator[Batch]:
    begin = min((r.start_ns for r in runs if r.phase != "init"), default=min(r.start_ns for r in runs))
    bounds = [begin, *(e for e in steps.ends_ns if e > begin)]
    latest = max(max(r.end_ns or r.start_ns, r.start_ns) for r in runs)
    spans = [Span(a, b, f"step {steps.at(a)}", "step", (("step", steps.at(a)),)) for a, b in itertools.pairwise(bounds)]
    if any(r.end_ns is None for r in runs) or latest > bounds[-1]:
        is_open = any(r.end_ns is None for r in runs)
        number = steps.at(bounds[-1])
        spans.append(Span(bounds[-1], None if is_open else latest, f"step {number}", "step", (("step", number),)))
    yield Batch(Track((CLUSTER, "steps"), origin=f"{ORIGIN}: a step ends with its weight sync, or with its update"), spans)


def queue_times(events: TaskEvents, owners: Owners | None = None) -> dict[str, list[float]]:
    """Seconds from submission to run, by task name, of tasks that began."""
    owners = owners or Owners(events)
    found: dict[str, list[float]] = defaultdict(list)
    for event in events.events:
        queued = owners.queued_ns(event)
        if queued is not None and event.kind != "DRIVER_TASK" and not is_ours(event):
            found[_class_of(event) + "." + _method(event) if event.actor_id else event.name].append(queued / 1e9)
    return dict(found)


def last_progress_ns(events: TaskEvents, owners: Owners | None = None) -> tuple[int, str] | None:
    """The latest moment, in the reference clock, at which any task ended, and its name.

    A driver's end is no progress, nor are our own tasks.
    """
    owners = owners or Owners(events)
    calls = (e for e in events.events if e.kind != "DRIVER_TASK" and not is_ours(e))
    ends = ((owners.to_reference((owners.key(e) or (e.node_id, None))[0], t), e.name) for e in calls if (t := ended_raw_ns(e)) is not None)
    return max(ends, default=None)


def narrow(events: TaskEvents, job_id: str | None) -> TaskEvents:
    """Only the tasks of one job."""
    return events if job_id is None else msgspec.structs.replace(events, events=tuple(e for e in events.events if e.job_id == job_id))
