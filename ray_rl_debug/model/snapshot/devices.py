"""GPUs, and what the communicators of the ranks recorded."""

from __future__ import annotations

from ray_rl_debug.model.snapshot.fact import Fact
from ray_rl_debug.model.snapshot.process import AwaitFrame


class Gpu(Fact, frozen=True, kw_only=True):
    """One NVIDIA GPU, or one MIG instance, as NVML sees it."""

    index: int
    uuid: str
    name: str
    utilization_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    sm_clock_mhz: float | None = None
    temperature_c: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    ecc_uncorrected: int | None = None
    xid: int | None = None
    """Last critical Xid seen by the driver since we looked, where readable."""
    pids: tuple[int, ...] = ()
    mig_parent: str | None = None


class CollectiveEntry(Fact, frozen=True, kw_only=True):
    """One Flight Recorder entry: a collective one rank enqueued."""

    group: str
    seq: int
    op: str
    """``nccl:all_reduce`` and the like."""
    state: str
    """``scheduled``, ``started`` or ``completed``."""
    retired: bool | None = None
    is_p2p: bool = False
    input_sizes: tuple[tuple[int, ...], ...] = ()
    output_sizes: tuple[tuple[int, ...], ...] = ()
    input_dtypes: tuple[str, ...] = ()
    output_dtypes: tuple[str, ...] = ()
    created_time_s: float | None = None
    started_time_s: float | None = None
    """When the recorder's watchdog found it started; it looks ten times a second."""
    completed_time_s: float | None = None
    frames: tuple[AwaitFrame, ...] = ()


class FlightRecord(Fact, frozen=True, kw_only=True):
    """The Flight Recorder of one rank."""

    source: str
    """File name or ``http://...`` it was read from."""
    rank: int | None = None
    pid: int | None = None
    groups: dict[str, tuple[int, ...]] = {}
    """Group name to member ranks."""
    group_descriptions: dict[str, str] = {}
    entries: tuple[CollectiveEntry, ...] = ()
    taken_time_s: float | None = None
    """When the recorder was read, or its file written."""
    first_record: int | None = None
    """Number of the oldest entry that is left: 0 when nothing was overwritten."""
    enqueued: dict[str, int] = {}
    """Group name to the number of the last collective enqueued, also where its entry is lost."""


class RasRank(Fact, frozen=True, kw_only=True):
    """One rank of an NCCL communicator as RAS reports it."""

    rank: int
    host: str | None = None
    pid: int | None = None
    device: int | None = None
    status: str | None = None
    counts: dict[str, int] = {}


class RasCommunicator(Fact, frozen=True, kw_only=True):
    """One NCCL communicator as RAS reports it."""

    hash: str
    size: int
    """0 where it is not known."""
    ranks: tuple[RasRank, ...] = ()
    missing: tuple[RasRank, ...] = ()
