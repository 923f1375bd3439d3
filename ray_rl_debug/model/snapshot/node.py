"""One node, and how its clock compares with ours."""

from __future__ import annotations

from ray_rl_debug.model.snapshot.awaited_file import AwaitedFile
from ray_rl_debug.model.snapshot.devices import FlightRecord, Gpu, RasCommunicator
from ray_rl_debug.model.snapshot.fact import Fact, Gap
from ray_rl_debug.model.snapshot.from_memory import SharedSemaphore
from ray_rl_debug.model.snapshot.process import EndedProcess, FileLock, Frame, LogLine, Process
from ray_rl_debug.model.snapshot.remark import Remark
from ray_rl_debug.model.snapshot.rollout_store import Runner
from ray_rl_debug.model.snapshot.system_v import SystemV


class Doors(Fact, frozen=True, kw_only=True):
    """Which ways into other processes this node's collector found open. None: not tried."""

    attach: bool | None = None
    """ptrace attach, what py-spy needs."""
    memory: bool | None = None
    """Reading /proc/PID/mem."""
    environ: bool | None = None
    """Reading /proc/PID/environ, fd and cwd."""
    public: bool | None = None
    """stat, status and cmdline."""
    setting: str | None = None
    """What closes the first closed door, e.g. ``ptrace_scope=1`` or ``no CAP_SYS_PTRACE``."""
    place: str | None = None
    """``bare``, ``docker``, ``kubernetes``, ``slurm`` or ``apptainer``."""


class Node(Fact, frozen=True, kw_only=True):
    """All facts of one machine."""

    name: str
    """Host name, made unique by the Ray node id where several raylets share a host."""
    node_id: str | None = None
    """Ray's node id in hex."""
    ip: str | None = None
    started_time_s: float
    window_s: float
    took_s: float | None = None
    boot_id: str | None = None
    """Same boot id and PID namespace: the same processes seen twice."""
    pid_namespace: str | None = None
    cpu_count: int | None = None
    cpus_allowed: int | None = None
    load1: float | None = None
    late_s: float | None = None
    """How late the collector was woken during the window: all its short timed waits together,"""
    longest_late_s: float | None = None
    """and the latest of them. More than some tenths: others kept the cores, and what we saw may be as old as that."""
    timed_waits: int | None = None
    """How many waits were measured."""
    cpu_pressure: float | None = None
    """Part of the window, 0 to 1, in which somebody on this machine was ready to run and had no core (PSI)."""
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    network_received_bytes: int | None = None
    """Of all interfaces but loopback, during the window."""
    network_sent_bytes: int | None = None
    oom_kills: int | None = None
    """Events of the ``oom_kill`` counter (all time) of the control group of the raylet, or of the first named process."""
    cgroup_memory_limit_bytes: int | None = None
    """The tightest limit of the same group and its visible parents; None when there is none."""
    cgroup_memory_used_bytes: int | None = None
    versions: dict[str, str] = {}
    doors: Doors | None = None
    frames: tuple[Frame, ...] = ()
    stacks: tuple[tuple[int, ...], ...] = ()
    """Each stack as indexes into `frames`, innermost first."""
    processes: tuple[Process, ...] = ()
    ended: tuple[EndedProcess, ...] = ()
    """The first few that ended during the window; the gap tells how many did."""
    locks: tuple[FileLock, ...] = ()
    awaited_files: tuple[AwaitedFile, ...] = ()
    semaphores: tuple[SharedSemaphore, ...] = ()
    system_v: tuple[SystemV, ...] = ()
    runners: tuple[Runner, ...] = ()
    """Rows of a store of rollouts that a process of this node serves; the runners may be elsewhere."""
    gpus: tuple[Gpu, ...] | None = None
    flight_records: tuple[FlightRecord, ...] = ()
    communicators: tuple[tuple[RasCommunicator, ...], ...] | None = None
    """One tuple of communicators per poll of NCCL RAS; None when RAS was not reachable."""
    log_lines: tuple[LogLine, ...] = ()
    """Matches in logs that belong to no collected process (raylet, gcs)."""
    remarks: tuple[Remark, ...] = ()
    """What an imported file says of processes that it does not name."""
    gaps: tuple[Gap, ...] = ()


class NodeClock(Fact, frozen=True, kw_only=True):
    """A node's wall clock against the clock of the machine that gathered, by pings of the node's agent."""

    node: str
    at_time_s: float
    """When, by the clock of the machine that gathered."""
    ahead_s: float
    """How much the node's clock is ahead of it."""
    bound_s: float
    """Half of the fastest ping's round trip: `ahead_s` is right within this."""
