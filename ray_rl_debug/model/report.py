"""The claims of one analysis, and the contract of ``--json`` (schema ``rayrl-debug/report/1``).

Fields may be added; none may change its meaning. Fields that are not known are null, and always written.
"""

from __future__ import annotations

import enum

from ray_rl_debug.model.claims import Claim, Who
from ray_rl_debug.model.log_story import LogStory
from ray_rl_debug.model.snapshot import Gap

__all__ = [
    "PHASES",
    "SCHEMA",
    "AwaitClass",
    "Cause",
    "Certainty",
    "Claim",
    "Evidence",
    "Finding",
    "Link",
    "LogStory",
    "NodeSummary",
    "ProcessSummary",
    "Report",
    "StackClass",
    "State",
    "Verdict",
    "Who",
    "WorldSummary",
]
SCHEMA = "rayrl-debug/report/1"


class State(str, enum.Enum):
    """The report's answer."""

    HANG = "hang"
    SLOW = "slow"
    HEALTHY = "healthy"
    FINISHED = "finished"
    UNKNOWN = "unknown"


class Certainty(str, enum.Enum):
    """How sure a claim is."""

    PROVEN = "proven"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Cause(str, enum.Enum):
    """The kinds of trouble; `collective` in torch's sense."""

    STRAGGLER = "straggler"
    COLLECTIVE_MISMATCH = "collective-mismatch"
    COLLECTIVE_STALLED = "collective-stalled"
    P2P_MISMATCH = "p2p-mismatch"
    INIT_DEADLOCK = "init-deadlock"
    CLEANUP_DEADLOCK = "cleanup-deadlock"
    RANK_DIED = "rank-died"
    WEIGHT_SYNC_MISMATCH = "weight-sync-mismatch"
    BLOCKED_IO = "blocked-io"
    LOCK_DEADLOCK = "lock-deadlock"
    GIL_HELD = "gil-held"
    DATALOADER_STUCK = "dataloader-stuck"
    ASYNCIO_STUCK = "asyncio-stuck"
    EVENT_LOOP_BLOCKED = "event-loop-blocked"
    STALENESS_GATE = "staleness-gate"
    ENGINE_PAUSED = "engine-paused"
    ENGINE_DIED = "engine-died"
    RAY_GET_CYCLE = "ray-get-cycle"
    RAY_PENDING = "ray-pending"
    RAY_QUEUED_CALL = "ray-queued-call"
    PRODUCER_DIED = "producer-died"
    OBJECT_STORE = "object-store"
    PROCESS_STOPPED = "process-stopped"
    RAYLET_START = "raylet-start"
    ZERO_STEPS = "zero-steps"


PHASES = (
    "init",
    "data",
    "rollout",
    "reward",
    "logprob",
    "values",
    "advantage",
    "update",
    "weight_sync",
    "checkpoint",
    "validation",
    "cleanup",
    "idle",
    "unknown",
)


class Evidence(Claim, frozen=True, kw_only=True):
    """One observed fact that supports a finding."""

    kind: str
    """``stack``, ``task``, ``socket``, ``proc``, ``gpu``, ``collective``, ``log``, ``actor``, ``lock``, ``file``, ``await``, ``env``."""
    where: str
    text: str
    source: str | None = None
    """File and line it was read from, where somebody gave files: ``node7.txt:12``."""


class Link(Claim, frozen=True, kw_only=True):
    """One edge of the wait-for graph: `waiter` waits for `target`."""

    waiter: Who
    target: Who
    why: str
    """``ray.get``, ``all_reduce``, ``socket``, ``lock``, ``waitpid``, ..."""
    evidence: str
    certainty: Certainty


class Finding(Claim, frozen=True, kw_only=True):
    """One rule's claim about named processes, with evidence."""

    id: str
    name: str
    cause: Cause
    certainty: Certainty
    summary: str
    root: bool = False
    phase: str | None = None
    who: tuple[Who, ...] = ()
    victims: tuple[Who, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    remedy: tuple[str, ...] = ()
    chain: tuple[Link, ...] = ()
    """The longest way from a waiter nobody waits for down to `who`."""
    against: tuple[Evidence, ...] = ()
    """What speaks against the claim, or what it assumes; of claims from files that other tools wrote."""


class Verdict(Claim, frozen=True, kw_only=True):
    state: State
    summary: str
    certainty: Certainty
    next: str | None = None
    """The next command to type."""


class Outcome(Claim, frozen=True, kw_only=True):
    """What a further look may show, and what that would mean."""

    seen: str
    means: str


class NextDump(Claim, frozen=True, kw_only=True):
    """A further look that would settle what is not sure."""

    what: str
    """Of which processes: ``pid 4008 again, in 30 s``."""
    command: str
    why: str
    who: tuple[Who, ...] = ()
    outcomes: tuple[Outcome, ...] = ()


class Symptom(Claim, frozen=True, kw_only=True):
    """One of the symptoms by which people recognise a hang, as AReaL's debugging guide numbers them."""

    number: int
    name: str
    holds: bool | None
    """None: not measured."""
    measured: str
    """What was measured for it."""


class NodeSummary(Claim, frozen=True, kw_only=True):
    """One node in the report."""

    name: str
    node_id: str | None = None
    ip: str | None = None
    processes: int | None = None
    stacks: int | None = None
    """Processes whose stacks were read."""
    gpus: int | None = None
    answered: bool = True


class ProcessSummary(Claim, frozen=True, kw_only=True):
    """One process in the report: who it is and what its telling thread did."""

    who: Who
    kind: str
    phase: str | None = None
    doing: str | None = None
    """One line: ``waits in all_reduce at dp_actor.py:30``."""
    state: str | None = None
    moving: bool | None = None
    """Did anything of it move during the window? None when it could not be told."""
    cpu_percent: float | None = None
    stack: tuple[str, ...] = ()
    """The telling thread, innermost first, ``function (file:line)``."""
    thread: str | None = None
    source: str | None = None
    """File and line of its stacks, where somebody gave files."""
    engine: str | None = None
    """What an inference engine said at its own endpoints, in one line."""
    rollout: str | None = None
    """What a store of rollouts says that this runner holds."""


class StackClass(Claim, frozen=True, kw_only=True):
    """Processes whose telling threads stand in the same place."""

    frames: tuple[str, ...]
    """Innermost first."""
    members: tuple[str, ...]
    """Labels."""
    kind: str
    """What kind of place it is: ``collective``, ``ray.get``, ``idle``, ..."""


class WorldSummary(Claim, frozen=True, kw_only=True):
    """A set of ranks that do collectives together."""

    name: str
    size: int | None
    ranks: tuple[int, ...]
    """Ranks that were seen alive."""
    missing: tuple[int, ...] = ()
    source: str | None = None


class AwaitClass(Claim, frozen=True, kw_only=True):
    """Asyncio tasks of one process with equal await chains."""

    process: str
    count: int
    chain: tuple[str, ...]
    """Outermost coroutine first."""
    awaited: str | None = None
    """In words: ``Semaphore with 0 permits: no coroutine is inside its async with``."""
    tasks: tuple[str, ...] = ()
    """Names of the first few."""
    node: str | None = None
    pid: int | None = None
    of: int | None = None
    """All tasks of the process."""
    own: int | None = None
    """Place in `chain` of the innermost coroutine of own code."""
    kind: str | None = None
    """``semaphore``, ``socket``, ...: as in the snapshot."""
    value: int | None = None
    """Permits of a semaphore, items of a queue."""
    holders: tuple[str, ...] = ()
    """Tasks that are known to hold what these want."""
    peer: str | None = None
    """``ip:port`` at the other end of the awaited socket."""
    object_id: str | None = None
    """The awaited ObjectRef."""
    behind: int = 0
    """Other tasks that wait for these."""
    is_at_rest: bool = False
    """Waits for the next piece of work by design."""
    stable: bool | None = None
    """None of them moved during the window; None where one read only was taken."""
    tid: int | None = None
    """The thread of their loop."""


class Report(Claim, frozen=True, kw_only=True):
    """The answer: verdict, findings (roots first, best first), gaps, and what was seen."""

    schema: str = SCHEMA
    tool_version: str = ""
    taken_time_s: float | None = None
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    gaps: tuple[Gap, ...] = ()
    nodes: tuple[NodeSummary, ...] = ()
    processes: tuple[ProcessSummary, ...] = ()
    worlds: tuple[WorldSummary, ...] = ()
    classes: tuple[StackClass, ...] = ()
    awaits: tuple[AwaitClass, ...] = ()
    links: tuple[Link, ...] = ()
    assumed: tuple[str, ...] = ()
    """What is taken for true without having been measured, in words: of files that other tools wrote."""
    next_dumps: tuple[NextDump, ...] = ()
    """What to dump next, the most telling first; empty where the answer is sure."""
    timing: dict[str, float] = {}
    story: LogStory | None = None
    """What the logs tell, where logs were given."""
