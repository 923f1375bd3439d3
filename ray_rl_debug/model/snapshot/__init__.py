"""The facts of one capture: what was seen, on which node, in which process, and what was not.

Facts are recorded here and judged elsewhere (`analyze`, `rules`). Every structure is frozen.
``None`` means *not measured*, never zero; why it was not measured stands in a `Gap`.
All times ending in ``_s`` are seconds. ``at_s`` counts from the start of the node's own capture (monotonic);
``*_time_s`` is Unix time of that node's clock.
"""

from __future__ import annotations

from ray_rl_debug.model.snapshot.awaited_file import AwaitedFile
from ray_rl_debug.model.snapshot.descriptors import Descriptors
from ray_rl_debug.model.snapshot.devices import CollectiveEntry, FlightRecord, Gpu, RasCommunicator, RasRank
from ray_rl_debug.model.snapshot.engine import EngineState
from ray_rl_debug.model.snapshot.fact import Fact, Gap
from ray_rl_debug.model.snapshot.from_memory import SemaphoreUse, SharedSemaphore, TorchGroup, TorchGroups
from ray_rl_debug.model.snapshot.log_book import LogBook, LogEvent, LogSign, LogStep, LogWriter
from ray_rl_debug.model.snapshot.node import Doors, Node, NodeClock
from ray_rl_debug.model.snapshot.process import (
    MAX_FILES,
    MAX_SOCKETS,
    AsyncTask,
    Awaited,
    AwaitFrame,
    EndedProcess,
    FileLock,
    Frame,
    InC,
    Local,
    LogLine,
    ObjectRefWait,
    OpenFile,
    Process,
    Sample,
    Socket,
    Thread,
    ThreadSample,
)
from ray_rl_debug.model.snapshot.ray_tables import (
    TASK_CALLER,
    CoreWorker,
    ObjectStore,
    OwnedTask,
    RayActor,
    RayDemand,
    RayJob,
    RayNode,
    RayPlacementGroup,
    RayState,
    RayTask,
    RayTaskCount,
    RayWorker,
    TaskHistory,
)
from ray_rl_debug.model.snapshot.remark import Remark
from ray_rl_debug.model.snapshot.rollout_store import Runner
from ray_rl_debug.model.snapshot.system_v import SystemV

__all__ = [
    "MAX_FILES",
    "MAX_SOCKETS",
    "SCHEMA",
    "TASK_CALLER",
    "AsyncTask",
    "AwaitFrame",
    "Awaited",
    "AwaitedFile",
    "CollectiveEntry",
    "CoreWorker",
    "Descriptors",
    "Doors",
    "EndedProcess",
    "EngineState",
    "Fact",
    "FileLock",
    "FlightRecord",
    "Frame",
    "Gap",
    "Gpu",
    "InC",
    "Local",
    "LogBook",
    "LogEvent",
    "LogLine",
    "LogSign",
    "LogStep",
    "LogWriter",
    "Node",
    "NodeClock",
    "ObjectRefWait",
    "ObjectStore",
    "OpenFile",
    "OwnedTask",
    "Process",
    "RasCommunicator",
    "RasRank",
    "RayActor",
    "RayDemand",
    "RayJob",
    "RayNode",
    "RayPlacementGroup",
    "RayState",
    "RayTask",
    "RayTaskCount",
    "RayWorker",
    "Remark",
    "Runner",
    "Sample",
    "SemaphoreUse",
    "SharedSemaphore",
    "Snapshot",
    "Socket",
    "SystemV",
    "TaskHistory",
    "Thread",
    "ThreadSample",
    "TorchGroup",
    "TorchGroups",
]

SCHEMA = "rayrl-debug/snapshot/1"


class Snapshot(Fact, frozen=True, kw_only=True, omit_defaults=False):
    """All facts of one capture: a file that can be mailed and analysed anywhere."""

    schema: str = SCHEMA
    tool_version: str = ""
    taken_time_s: float
    job_id: str | None = None
    """The Ray job this capture was narrowed to; None for all."""
    nodes: tuple[Node, ...] = ()
    ray: RayState | None = None
    listed: RayState | None = None
    """Rows of ``ray list`` that somebody pasted: neither complete nor of the same moment as the stacks."""
    gaps: tuple[Gap, ...] = ()
    clocks: tuple[NodeClock, ...] = ()
    """Two or more per node: before and after the collection."""
    options: dict[str, str | int | float | bool] = {}
    timing: dict[str, float] = {}
    logs: tuple[LogBook, ...] = ()
    """Log files that a user gave."""
