"""What a trial of an agent measured, and the document of ``rollout try --json`` (schema ``rayrl-debug/trial/1``)."""

from __future__ import annotations

import msgspec

from ray_rl_debug.model.health import Result, Status

SCHEMA = "rayrl-debug/trial/1"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Base: immutable, fields by name; None is *not measured*."""


class Gate(Told, frozen=True, kw_only=True):
    """The staleness control of AReaL as configured."""

    batch_size: int
    """Rollouts that are asked for at once; a group of equal prompts is one."""
    max_concurrent: int | None = None
    """``max_concurrent_rollouts``; None: as many as the consumer takes at once."""
    max_offpolicyness: int = 0
    consumer_batch_size: int | None = None
    """None: `batch_size`."""
    data_parallel: int = 1
    """Engines that share the limits."""
    version: int = 0


class Plan(Told, frozen=True, kw_only=True):
    """What is tried."""

    target: str
    batch_size: int = 8
    group_size: int = 4
    levels: tuple[int, ...] = ()
    """Concurrencies to go through before the whole batch; empty: powers of two."""
    rounds: int = 3
    """So often the whole batch is run: what grows from round to round is a leak."""
    timeout_s: float = 60.0
    """For one episode."""
    deadline_s: float = 600.0
    """For all."""
    endpoints: tuple[str, ...] = ()
    """Base URLs with ``/v1``; none: the stand-in."""
    model: str | None = None
    api_key: str = "none"
    max_tokens: int = 64
    init: dict[str, object] = {}
    extra: dict[str, object] = {}
    tokenizer: str | None = None
    rows: tuple[dict[str, object], ...] = ()
    python: str | None = None
    """The interpreter that has the user's packages; None: ours."""
    stand_in: dict[str, object] = {}
    gate: Gate | None = None


class Error(Told, frozen=True, kw_only=True):
    """An exception that ended an episode."""

    type: str
    text: str = ""
    cause: str | None = None
    frames: tuple[str, ...] = ()
    """Innermost first."""


class Episode(Told, frozen=True, kw_only=True):
    """One call of the agent."""

    number: int
    stage: int
    group: int
    began_s: float
    took_s: float | None = None
    """None: it had not ended."""
    reward: float | None = None
    wrong: str | None = None
    """What is wrong with what it returned."""
    error: Error | None = None
    was_cancelled: bool = False


class Blocked(Told, frozen=True, kw_only=True):
    """The event loop served nobody for a time."""

    stage: int
    since_s: float
    for_s: float
    stack: tuple[str, ...] = ()
    """Where it stood most of the time, innermost first, down to the loop; empty: in the loop itself."""
    share: float = 1.0
    """Part of the looks with that stack."""
    looks: int = 1
    cpu_s: float = 0.0
    """CPU time of the loop's thread in that time, and"""
    queued_s: float = 0.0
    """how long it was ready and had no core."""
    is_over: bool = True


class Stood(Told, frozen=True, kw_only=True):
    """Where the loop's thread stood in callbacks during a stage, summed over many looks."""

    stack: tuple[str, ...]
    """Innermost first, down to the loop."""
    waited_s: float = 0.0
    """The process used no CPU meanwhile, and the thread did not want a core."""
    computed_s: float = 0.0


class LoopTime(Told, frozen=True, kw_only=True):
    """What the loop's thread did in one stage."""

    stage: int
    looked_s: float
    """Seconds that the looks cover."""
    ran_s: float = 0.0
    queued_s: float = 0.0
    """It was ready and had no core."""
    places: tuple[Stood, ...] = ()


class Place(Told, frozen=True, kw_only=True):
    """Episodes of a stage that stand at the same place and wait for the same kind of thing, over all looks."""

    where: str
    """The innermost frame of own code, ``function (file:line)``."""
    kind: str
    """As `snapshot.Awaited.kind`, or ``connection-pool``, or ``thread`` of a synchronous episode."""
    what: str = ""
    count: int = 0
    """Episodes, summed over the looks."""
    chain: tuple[str, ...] = ()
    """Outermost first."""
    lets_in: int | None = None
    """Of a semaphore or lock: the most that were seen inside at once."""


class Held(Told, frozen=True, kw_only=True):
    """What the child process holds once a stage is over."""

    descriptors: int | None = None
    connections: int | None = None
    """TCP sockets, of which"""
    half_closed: int | None = None
    """are in CLOSE_WAIT: the other end has gone, ours was not closed."""
    to: dict[str, int] = {}
    """Connections by the other end, the most frequent few."""
    tasks: int | None = None
    """Unfinished asyncio tasks that are not ours,"""
    task_places: dict[str, int] = {}
    """and where the most of them stand."""
    threads: int | None = None
    rss_bytes: int | None = None


class Finding(Told, frozen=True, kw_only=True):
    """What the rules for hangs say of the child while its episodes are stuck."""

    id: str
    name: str
    cause: str
    summary: str
    stack: tuple[str, ...] = ()


class Stage(Told, frozen=True, kw_only=True):
    """One step of the trial."""

    number: int
    name: str
    """``alone``, ``group``, ``level``, ``batch``."""
    concurrency: int
    episodes: int
    began_s: float = 0.0
    took_s: float | None = None
    """Until the last episode ended; None: it did not come to its end."""
    cpu_s: float | None = None
    """CPU time of the process during the stage."""
    looks: int = 0
    running: float | None = None
    """Episodes that were unfinished, on average over the looks."""
    places: tuple[Place, ...] = ()
    engine_peak: int | None = None
    """Requests that the stand-in had at once."""
    held: Held | None = None


class Facts(Told, frozen=True, kw_only=True):
    """All that was measured."""

    target: str
    contract: str | None = None
    note: str = ""
    python: str = ""
    unusable: str | None = None
    """Why no episode could be run,"""
    cure: str | None = None
    """and what would help, where that is known."""
    ended: str | None = None
    """How the child process ended, where it did by itself."""
    is_interrupted: bool = False
    is_cut: bool = False
    """The deadline for all came first."""
    is_stand_in: bool = False
    endpoints: tuple[str, ...] = ()
    timeout_s: float = 60.0
    stages: tuple[Stage, ...] = ()
    episodes: tuple[Episode, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    loops: tuple[LoopTime, ...] = ()
    """One for each stage that came to its end."""
    stuck_stage: int | None = None
    """In which an episode did not end in time; no stage follows it."""
    stuck: tuple[Place, ...] = ()
    """Where its unfinished episodes stood."""
    findings: tuple[Finding, ...] = ()
    """Of a snapshot taken at that moment."""
    gone_on_cancel: bool | None = None
    """Did they end when they were cancelled?"""
    counters: dict[str, int] = {}
    """Of the stand-in, over the whole trial."""
    output: tuple[str, ...] = ()
    """The last lines that the user's code printed."""
    gate: Gate | None = None
    gaps: tuple[str, ...] = ()


class Figures(Told, frozen=True, kw_only=True):
    """One stage in numbers."""

    name: str
    concurrency: int
    episodes: int
    done: int
    failed: int
    per_s: float | None = None
    p50_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None
    engine_peak: int | None = None


class Rewards(Told, frozen=True, kw_only=True):
    """How the rewards lie."""

    count: int
    mean: float
    deviation: float
    least: float
    most: float
    groups: int
    equal_groups: int
    """Groups of two or more with equal rewards: they teach nothing."""
    within: float | None = None
    """Mean standard deviation within a group."""


class Trial(Told, frozen=True, kw_only=True):
    """The document of ``rollout try --json``."""

    schema: str = SCHEMA
    tool_version: str = ""
    state: Status
    facts: Facts
    results: tuple[Result, ...] = ()
    figures: tuple[Figures, ...] = ()
    rewards: Rewards | None = None
    knee: int | None = None
    """Concurrency from which on more of it brings no more throughput; None: not reached, or not measured."""
