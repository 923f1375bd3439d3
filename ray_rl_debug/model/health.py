"""What the doctor measures on each node (`NodeHealth`) and what it says of it (`Result`).

``None`` means *not measured*, never zero. Facts are recorded by `collect.health` and judged by the checks in `doctor`.
"""

from __future__ import annotations

import enum

import msgspec

from ray_rl_debug.model.lightning import Store
from ray_rl_debug.model.pod import Pod
from ray_rl_debug.model.snapshot import Doors, Fact, Gap, Gpu, LogLine

FACTS_SCHEMA = "rayrl-debug/health/1"
SCHEMA = "rayrl-debug/doctor/1"


class Plan(Fact, frozen=True, kw_only=True):
    """What is going to be asked of Ray on a node; None where Ray would choose."""

    is_preflight: bool = False
    """Nothing of Ray runs yet: also measure what starting costs, and whether its ports are free."""
    num_cpus: int | None = None
    num_gpus: int | None = None
    temp_dir: str | None = None
    log_dir: str | None = None
    port_base: int | None = None
    """First port of the block that `slurm render` plans with."""
    address: str | None = None
    """``host:port`` of the GCS, where it runs already."""
    register_timeout_s: float = 60.0
    slurm_job: str | None = None
    """Number of a job that runs: its processes are meant, not those that a program started here would have."""
    meeting_dir: str | None = None
    """A folder that all nodes see: the nodes of one srun step meet there to test their network."""


class Cpus(Fact, frozen=True, kw_only=True):
    machine: int | None = None
    allowed: int | None = None
    """CPUs in the affinity mask of this process."""
    step: int | None = None
    """CPUs in the control group of this Slurm step."""
    job: int | None = None
    """CPUs in the control group of this Slurm job."""
    quota: float | None = None
    """The tightest CPU quota along the control group's path, in cores; None for no quota."""
    slurm_per_task: int | None = None
    slurm_on_node: int | None = None


class Limit(Fact, frozen=True, kw_only=True):
    """A resource limit; None is unlimited."""

    soft: int | None = None
    hard: int | None = None


class Limits(Fact, frozen=True, kw_only=True):
    processes: Limit | None = None
    user_threads: int | None = None
    """Threads of this user on this node now; they all count against `processes`."""
    group_max: int | None = None
    """``pids.max`` of the tightest control group; None for no limit."""
    group_now: int | None = None
    files: Limit | None = None
    locked_memory: Limit | None = None


class Memory(Fact, frozen=True, kw_only=True):
    total_bytes: int | None = None
    limit_bytes: int | None = None
    """Of the control group; None for no limit."""
    ray_bytes: int | None = None
    """What Ray takes for the memory of this node."""
    shm_total_bytes: int | None = None
    shm_free_bytes: int | None = None


class Folder(Fact, frozen=True, kw_only=True):
    """A folder that Ray or the job writes to, or would create."""

    path: str
    owner: str | None = None
    """Of the folder, or of its nearest parent that exists."""
    is_ours: bool | None = None
    error: str | None = None
    """Why a file, or a Unix socket, cannot be made there; None when it can."""
    filesystem: str | None = None
    free_bytes: int | None = None
    is_noexec: bool | None = None
    mark: str | None = None
    """Name of the marker file that all nodes share there; nodes that see different marks see different folders."""
    clock_ahead_s: float | None = None
    """Of this node against the file system's own time stamps."""
    stale: tuple[str, ...] = ()
    """Ray sessions there in which nothing runs."""


class RayProcess(Fact, frozen=True, kw_only=True):
    """A raylet or GCS of any user."""

    pid: int
    kind: str
    """``raylet`` or ``gcs``."""
    user: str | None = None
    address: str | None = None
    """Of its GCS."""
    slurm_job: str | None = None
    temp_dir: str | None = None
    cpus_claimed: float | None = None
    cpus_allowed: int | None = None
    gpus_claimed: float | None = None
    is_of_our_group: bool | None = None
    """Is it in the control groups of the process that looked? One of another container has limits of its own."""
    env: dict[str, str] | None = None
    """Allowed variables; None when not readable."""


class Port(Fact, frozen=True, kw_only=True):
    number: int
    use: str
    error: str | None = None
    """Why it cannot be bound; None when it can."""
    holder: str | None = None


class Interface(Fact, frozen=True, kw_only=True):
    name: str
    addresses: tuple[str, ...] = ()
    """IPv4 only."""
    is_up: bool | None = None


class Network(Fact, frozen=True, kw_only=True):
    host: str
    resolved: tuple[str, ...] = ()
    """Addresses of the own host name, in the resolver's order."""
    interfaces: tuple[Interface, ...] = ()
    infiniband: tuple[str, ...] | None = None
    """Active ports, as ``mlx5_0/1``."""
    proxies: tuple[str, ...] = ()
    """Names of the proxy variables that are set."""
    no_proxy: tuple[str, ...] = ()


class Contact(Fact, frozen=True, kw_only=True):
    """One attempt to reach another node over TCP."""

    peer: str
    address: str
    took_s: float | None = None
    error: str | None = None
    clock_ahead_s: float | None = None
    """Of this node against the peer."""
    bound_s: float | None = None


class Auth(Fact, frozen=True, kw_only=True):
    mode: str | None = None
    source: str | None = None
    """Where the token is, never the token."""
    digest: str | None = None
    """First digits of its SHA-256."""


class Start(Fact, frozen=True, kw_only=True):
    """``import ray`` in a process of its own, twice."""

    cold_s: float | None = None
    warm_s: float | None = None
    cpu_s: float | None = None
    """CPU time of the second time."""
    ray_cpus: int | None = None
    """How many CPUs Ray would take when not told."""
    error: str | None = None


class Looking(Fact, frozen=True, kw_only=True):
    """May we look into processes? Tried on a child of our own."""

    doors: Doors
    pyspy: str | None = None
    """Version; None when it is not there."""
    error: str | None = None
    """What py-spy said when it could not read the child."""
    remedy: str | None = None


class Gpus(Fact, frozen=True, kw_only=True):
    devices: tuple[Gpu, ...] | None = None
    has_driver: bool = False
    driver: str | None = None
    error: str | None = None
    """What NVML said."""
    slurm: int | None = None
    """GPUs that Slurm gave this job on this node."""


class Slurm(Fact, frozen=True, kw_only=True):
    job_id: str
    version: str | None = None
    kill_wait_s: int | None = None
    unkillable_timeout_s: int | None = None
    has_memory: bool | None = None
    """Is memory a resource that steps must share?"""
    left_s: int | None = None
    """Until the time limit."""


class NodeHealth(Fact, frozen=True, kw_only=True):
    """All that was measured on one node."""

    schema: str = FACTS_SCHEMA
    tool_version: str = ""
    name: str
    taken_time_s: float
    plan: Plan
    cpus: Cpus = Cpus()
    limits: Limits = Limits()
    memory: Memory = Memory()
    temp: Folder | None = None
    logs: Folder | None = None
    ray: tuple[RayProcess, ...] | None = None
    ports: tuple[Port, ...] | None = None
    network: Network | None = None
    contacts: tuple[Contact, ...] | None = None
    auth: Auth | None = None
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    start: Start | None = None
    looking: Looking | None = None
    gpus: Gpus | None = None
    slurm: Slurm | None = None
    pod: Pod | None = None
    """None outside of Kubernetes."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    """Allowed variables of this process."""
    log_lines: tuple[LogLine, ...] | None = None
    """Known errors in logs; None when no logs were asked for."""
    gaps: tuple[Gap, ...] = ()


class Health(Fact, frozen=True, kw_only=True):
    """All nodes."""

    nodes: tuple[NodeHealth, ...]
    silent: tuple[tuple[str, str], ...] = ()
    """Nodes that gave nothing, and why."""
    store: Store | None = None
    """Agent-Lightning's, where it was asked."""


class Status(str, enum.Enum):
    FAIL = "fail"
    WARN = "warn"
    UNKNOWN = "unknown"
    """Not measured, or the check itself failed."""
    OK = "ok"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One check's answer about one node, or about all."""

    id: str = ""
    check: str = ""
    """``cpu.allowed``"""
    name: str = ""
    status: Status
    node: str | None = None
    """None: about all nodes together."""
    measured: str
    threshold: str = ""
    consequence: str | None = None
    remedy: str | None = None
    """One command, one line of a job script, or lines of a manifest."""


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """The document of ``doctor --json``."""

    schema: str = SCHEMA
    tool_version: str = ""
    taken_time_s: float | None = None
    state: Status
    """The worst that was found; *unknown* only when nothing could be measured."""
    nodes: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    gaps: tuple[Gap, ...] = ()
