"""Ray's own tables: nodes, jobs, actors, workers, tasks, placement groups, statistics of core workers."""

from __future__ import annotations

from ray_rl_debug.model.snapshot.fact import Fact


class RayNode(Fact, frozen=True, kw_only=True):
    node_id: str
    ip: str
    host: str
    alive: bool
    resources: dict[str, float] = {}
    available: dict[str, float] | None = None
    death: str | None = None
    port: int | None = None
    """Port of the raylet's node manager."""
    is_head: bool | None = None
    labels: dict[str, str] | None = None
    """By which actors choose their nodes; those of Ray's own among them. None: not read."""


class RayJob(Fact, frozen=True, kw_only=True):
    job_id: str
    driver_pid: int | None = None
    driver_ip: str | None = None
    alive: bool = True
    entrypoint: str | None = None
    """The program and its allowed arguments."""
    namespace: str | None = None
    submission_id: str | None = None
    start_time_s: float | None = None
    end_time_s: float | None = None


class RayActor(Fact, frozen=True, kw_only=True):
    actor_id: str
    job_id: str
    class_name: str
    state: str
    """``DEPENDENCIES_UNREADY``, ``PENDING_CREATION``, ``ALIVE``, ``RESTARTING`` or ``DEAD``."""
    name: str | None = None
    namespace: str | None = None
    pid: int | None = None
    node_id: str | None = None
    worker_id: str | None = None
    address: str | None = None
    owner_worker_id: str | None = None
    restarts: int = 0
    death: str | None = None
    """One line: why it died."""
    death_kind: str | None = None
    """``killed``, ``oom``, ``exited``, ``node-died``, ``creation-failed``, ``out-of-scope``, ``unknown``."""
    resources: dict[str, float] = {}
    """What it needs to run."""
    wanted_labels: dict[str, str] = {}
    """Labels that its node must have: a value, ``!value``, ``in(a,b)`` or ``!in(a,b)`` for each."""
    placement_group_id: str | None = None
    """Where these come from, if not from a node as such."""
    bundle: int | None = None
    """Of its placement group; None where any will do."""
    start_time_s: float | None = None
    end_time_s: float | None = None
    is_async: bool | None = None


class RayWorker(Fact, frozen=True, kw_only=True):
    worker_id: str
    pid: int
    kind: str
    """``WORKER``, ``DRIVER``, ``SPILL_WORKER``, ``RESTORE_WORKER``."""
    alive: bool
    node_id: str | None = None
    ip: str | None = None
    job_id: str | None = None
    exit: str | None = None


class RayTask(Fact, frozen=True, kw_only=True):
    """An unfinished task (or a failed one, where asked for)."""

    task_id: str
    name: str
    state: str
    job_id: str | None = None
    kind: str | None = None
    """``NORMAL_TASK``, ``ACTOR_TASK``, ``ACTOR_CREATION_TASK``, ``DRIVER_TASK``."""
    parent_task_id: str | None = None
    actor_id: str | None = None
    node_id: str | None = None
    pid: int | None = None
    worker_id: str | None = None
    attempt: int = 0
    state_times_s: dict[str, float] = {}
    resources: dict[str, float] = {}
    placement_group_id: str | None = None
    bundle: int | None = None
    error: str | None = None

    @property
    def is_running(self) -> bool:
        return self.state.startswith("RUNNING")


class RayTaskCount(Fact, frozen=True, kw_only=True):
    """Calls of one function or class in a pasted ``ray summary tasks``."""

    name: str
    kind: str | None = None
    """``NORMAL_TASK``, ``ACTOR_TASK``, ``ACTOR_CREATION_TASK``."""
    states: dict[str, int] = {}
    """How many are in each state: ``{"RUNNING": 8}``."""


TASK_CALLER = "task:"
"""What stands before the name of a plain task among the callers of a method."""


class TaskHistory(Fact, frozen=True, kw_only=True):
    """How long finished tasks of one name took: what is usual for this run."""

    name: str
    count: int
    longest_s: float
    usual_s: float | None = None
    """The longest of those that do not stand apart from the others; None in files of older versions."""
    last_end_time_s: float | None = None
    callers: tuple[str, ...] | None = None
    """Actors whose calls made them, by id, ``driver``, and plain tasks by their name (``task:evaluate``); None where there were many or some are not
    known, and in files of older versions."""


class RayPlacementGroup(Fact, frozen=True, kw_only=True):
    placement_group_id: str
    state: str
    """``PENDING``, ``PREPARED``, ``CREATED``, ``RESCHEDULING``, ``REMOVED``."""
    name: str | None = None
    job_id: str | None = None
    bundles: tuple[dict[str, float], ...] = ()
    bundle_nodes: tuple[str | None, ...] = ()
    strategy: str | None = None
    creator_actor_id: str | None = None
    """The actor that asked for it; None for a driver, and in files of older versions."""
    scheduling: str | None = None
    """Scheduling state of the last attempt: ``QUEUED``, ``INFEASIBLE``, ..."""


class OwnedTask(Fact, frozen=True, kw_only=True):
    """A task a worker submitted and that has not ended."""

    task_id: str
    name: str
    status: str | None = None
    actor_id: str | None = None
    parent_task_id: str | None = None


class CoreWorker(Fact, frozen=True, kw_only=True):
    """Live statistics of one Ray worker process, answered by its C++ thread even while Python is stuck."""

    pid: int
    worker_id: str
    node_id: str | None = None
    job_id: str | None = None
    actor_id: str | None = None
    kind: str | None = None
    running_task_ids: tuple[str, ...] = ()
    queue_length: int | None = None
    """Calls accepted and not started."""
    pending_tasks: int | None = None
    executed_tasks: int | None = None
    """Tasks executed so far; the later of the two reads."""
    executed_tasks_before: int | None = None
    """The same at the start of the window: a difference is progress."""
    owned: tuple[OwnedTask, ...] = ()
    """What it submitted and still waits for or owns."""


class RayDemand(Fact, frozen=True, kw_only=True):
    """What waits for resources, as ``ray status`` counts it."""

    need: str
    """Of each: ``GPU: 1.0``."""
    count: int
    """So many at least."""
    kind: str
    """``tasks/actors`` or ``placement groups``."""


class RayState(Fact, frozen=True, kw_only=True):
    """Ray's own tables at one moment."""

    address: str
    """GCS ``ip:port``."""
    version: str | None = None
    session: str | None = None
    nodes: tuple[RayNode, ...] = ()
    jobs: tuple[RayJob, ...] = ()
    actors: tuple[RayActor, ...] = ()
    workers: tuple[RayWorker, ...] = ()
    tasks: tuple[RayTask, ...] = ()
    failed: tuple[RayTask, ...] = ()
    """The latest calls that have raised or were lost, with the name of the error; also those of which nobody has asked for the result."""
    tasks_dropped: int | None = None
    history: tuple[TaskHistory, ...] = ()
    placement_groups: tuple[RayPlacementGroup, ...] = ()
    core_workers: tuple[CoreWorker, ...] = ()
    task_counts: tuple[RayTaskCount, ...] = ()
    """Of a pasted ``ray summary tasks`` only."""
    demands: tuple[RayDemand, ...] = ()
    """Of a pasted ``ray status`` only."""
    usage: dict[str, tuple[float, float]] = {}
    """Of the same: for each resource how much is in use, and how much there is."""
    finished_before: dict[str, int] = {}
    """Per job: tasks finished when the window began, where counted."""
    finished_after: dict[str, int] = {}
    object_store: dict[str, ObjectStore] = {}
    """Per node id."""


class ObjectStore(Fact, frozen=True, kw_only=True):
    used_bytes: int | None = None
    capacity_bytes: int | None = None
    fallback_bytes: int | None = None
    spilled_bytes: int | None = None
    restored_bytes: int | None = None
    spill_pending_bytes: int | None = None
    pulls_pending: int | None = None
