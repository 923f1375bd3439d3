"""Tables from a timeline: phase by step, idle time, rollout tail, staleness, queue times, time since the last progress. Seconds throughout."""

from __future__ import annotations

import msgspec


class PhaseRow(msgspec.Struct, frozen=True):
    """One phase of one step over all ranks that were in it."""

    step: int
    phase: str
    ranks: int
    median_s: float
    max_s: float
    straggler: str
    """The rank that took longest."""
    lost_rank_s: float
    """Sum over ranks of how much earlier than the last one they were done."""
    unfinished: int = 0
    """Ranks still in it when last seen; their time runs up to that moment."""


class IdleRow(msgspec.Struct, frozen=True):
    """How much of the time a rank, and its GPU, had nothing to do."""

    rank: str
    window_s: float
    idle_ratio: float
    """Share of the time in no phase."""
    gpu: str | None = None
    gpu_samples: int = 0
    bubble_ratio: float | None = None
    """Share of GPU samples below 5 % that were taken while the rank was in no phase; None without GPU samples."""


class TailRow(msgspec.Struct, frozen=True):
    """How long rollouts of one kind took."""

    name: str
    count: int
    p50_s: float | None
    """None: none of them has ended."""
    p99_s: float | None
    tail_s: float | None
    """p99 less p50."""
    unfinished: int = 0


class StalenessRow(msgspec.Struct, frozen=True):
    """How many weight versions the consumed samples were behind."""

    step: int
    mean: float
    most: float
    source: str


class QueueRow(msgspec.Struct, frozen=True):
    """How long tasks of one name waited between submission and run."""

    task: str
    count: int
    p50_s: float
    p99_s: float
    max_s: float


class Tables(msgspec.Struct, frozen=True):
    """All tables; an empty one had nothing to be made of."""

    phases: tuple[PhaseRow, ...] = ()
    idle: tuple[IdleRow, ...] = ()
    rollout: tuple[TailRow, ...] = ()
    staleness: tuple[StalenessRow, ...] = ()
    queues: tuple[QueueRow, ...] = ()
    since_progress_s: float | None = None
    """Since any task or phase ended, until the run was last seen."""
    last_progress: str | None = None
    """What ended last."""
    steps_left_out: int = 0
