"""The facts of one capture: what was seen, on which node, in which process, and what was not.

Facts are recorded here and judged elsewhere (`analyze`, `detectors`). Every structure is frozen.
``None`` means *not measured*, never zero; why it was not measured stands in a `Gap`.
All times ending in ``_s`` are seconds. ``at_s`` counts from the start of the node's own capture (monotonic);
``*_time_s`` is Unix time of that node's clock.
"""

from __future__ import annotations

import msgspec

SCHEMA = "rayrl-debug/snapshot/1"


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all stored structures: immutable, fields by name, defaults not written."""


class Gap(Fact, frozen=True, kw_only=True):
    """A fact we tried to get and did not."""

    id: str
    """An id of `ray_rl_debug.gaps`, such as ``RRD902``."""
    where: str
    """``node`` or ``node/pid`` or ``cluster``."""
    what: str
    """What is missing, e.g. ``stacks of 12 processes``."""
    reason: str
    remedy: str | None = None
    """The one command or setting that would close the gap."""


# --- stacks ----------------------------------------------------------------------------------------------------------


class Frame(Fact, frozen=True, kw_only=True):
    """One place in a stack. Interned once per node in `Node.frames`."""

    function: str
    """Qualified where the interpreter knows it: ``ActorRolloutRefWorker.update_actor``."""
    file: str
    """Path below site-packages where there is one, else the full path."""
    line: int | None = None


class Local(Fact, frozen=True, kw_only=True):
    """One local variable of a frame of torch's or Ray's own code (never of user code)."""

    frame: int
    """Position in the thread's stack; 0 is the innermost frame."""
    name: str
    value: str


class ThreadSample(Fact, frozen=True, kw_only=True):
    """One thread's stack at one moment."""

    stack: int
    """Index into `Node.stacks`."""
    tid: int | None = None
    """Operating-system thread id, as seen from the node's root PID namespace."""
    name: str | None = None
    """Python's thread name: ``MainThread``, ``AsyncIO Thread: default``."""
    active: bool | None = None
    owns_gil: bool | None = None
    waits_for_gil: bool | None = None
    """Only pystack tells."""
    locals: tuple[Local, ...] = ()


class Sample(Fact, frozen=True, kw_only=True):
    """The stacks of one process at one moment."""

    at_s: float
    threads: tuple[ThreadSample, ...]
    source: str = "py-spy"
    """``py-spy``, ``py-spy --nonblocking``, ``pystack``, ``faulthandler``, ``file``."""
    native: bool = False


# --- one process -----------------------------------------------------------------------------------------------------


class Thread(Fact, frozen=True, kw_only=True):
    """What the kernel says of one thread over the sampling window."""

    tid: int
    comm: str
    state: str
    """One letter of ``/proc/PID/task/TID/stat``: R, S, D, T, t, Z, X, I."""
    wchan: str | None = None
    syscall: int | None = None
    """System call number, or None when running or not readable."""
    syscall_arg0: int | None = None
    """First argument of the call in progress: a file descriptor for read, recv, flock; else rarely useful."""
    cpu_s: float | None = None
    """CPU time, user and system, spent during the window."""
    run_slices: int | None = None
    """Times the scheduler let it run during the window (third figure of schedstat): next to none for a thread that sleeps."""


class Socket(Fact, frozen=True, kw_only=True):
    """One socket that a process holds."""

    family: str
    """``tcp``, ``tcp6`` or ``unix``."""
    state: str
    """``ESTABLISHED``, ``LISTEN``, ``CLOSE_WAIT``, ``SYN_SENT``, ..."""
    local: str
    """``ip:port``; for Unix sockets the path or empty."""
    remote: str | None = None
    """The other end in the same form; None for a listener, and for a Unix socket whose other end is not known."""
    inode: int | None = None
    peer_inode: int | None = None
    """The other end of a Unix socket, where ``ss``/sock_diag tells."""
    fd: int | None = None
    tx_queue_bytes: int | None = None
    rx_queue_bytes: int | None = None
    retransmits: int | None = None
    bytes_sent: int | None = None
    """Acknowledged by the other end since the connection was made."""
    bytes_received: int | None = None
    quiet_s: float | None = None
    """Seconds since data last came in, at the end of the window."""


class OpenFile(Fact, frozen=True, kw_only=True):
    """A file, FIFO, pipe or device a process holds open (regular libraries are left out)."""

    fd: int
    path: str
    kind: str
    """``file``, ``fifo``, ``pipe``, ``device``."""
    inode: int | None = None
    device: str | None = None
    """``major:minor`` in hex as in /proc/locks."""
    writable: bool | None = None
    mount: str | None = None
    """``type source`` of the mount for network file systems (nfs, fuse, lustre, ...)."""


class FileLock(Fact, frozen=True, kw_only=True):
    """One row of ``/proc/locks``; a waiter has ``waiting`` set and the same lock id as its holder."""

    lock: int
    kind: str
    """``FLOCK``, ``POSIX`` or ``OFDLCK``."""
    access: str
    """``READ`` or ``WRITE``."""
    pid: int
    device: str
    inode: int
    waiting: bool = False


class ObjectRefWait(Fact, frozen=True, kw_only=True):
    """ObjectRefs a thread waits for in ``ray.get`` or ``ray.wait``."""

    call: str
    """``get`` or ``wait``."""
    object_ids: tuple[str, ...]
    """Hex. The first 48 digits are the id of the task that produces the object."""
    tid: int | None = None
    complete: bool = True
    """False when py-spy showed only the first few of a longer list."""


class AwaitFrame(Fact, frozen=True, kw_only=True):
    """One coroutine of an await chain."""

    function: str
    file: str | None = None
    line: int | None = None


class Awaited(Fact, frozen=True, kw_only=True):
    """What an asyncio task finally waits for."""

    kind: str
    """``future``, ``lock``, ``semaphore``, ``event``, ``condition``, ``queue``, ``sleep``, ``gather``, ``task``, ``socket``, ``objectref``,
    ``executor``, ``running`` (executing now), ``ready`` (waits only for its turn on the loop) or ``unknown``."""
    detail: str | None = None
    """Type name and state, e.g. ``Semaphore value=0`` or ``Queue.get empty``."""
    address: int | None = None
    """Identity of the primitive: equal addresses in one process are one lock."""
    tasks: tuple[int, ...] = ()
    """Addresses of asyncio tasks waited for (await task, gather)."""
    object_id: str | None = None
    value: int | None = None
    """Permits of a semaphore, items of a queue."""
    fd: int | None = None
    delay_s: float | None = None
    due_s: float | None = None
    """Seconds from the moment of reading until a sleep ends; negative when it is overdue, as on a blocked loop."""
    holders: tuple[int, ...] = ()
    """Addresses of the tasks that are inside ``async with`` of this lock or semaphore. Who took it by a bare ``acquire()`` is not known."""


class AsyncTask(Fact, frozen=True, kw_only=True):
    """One suspended or running asyncio task, read from outside."""

    address: int
    name: str
    chain: tuple[AwaitFrame, ...]
    """Outermost coroutine first."""
    awaited: Awaited | None = None
    loop: int | None = None
    """Address of the event loop."""
    tid: int | None = None
    """The operating-system thread that runs the loop."""
    stable: bool | None = None
    """Unchanged between two reads of this snapshot."""


class Process(Fact, frozen=True, kw_only=True):
    """One process of the job or of Ray itself."""

    pid: int
    ppid: int | None = None
    title: str
    """What ``ps`` shows: Ray's ``ray::Class.method``, or the program with its allowed arguments (values of others are dropped)."""
    comm: str | None = None
    kind: str = "other"
    """``ray-worker``, ``driver``, ``raylet``, ``gcs``, ``ray-system`` (agents, monitor, log monitor), ``child``, ``agent`` (ours),
    ``named`` (given by --pid) or ``other``."""
    uid: int | None = None
    start_time_s: float | None = None
    state: str | None = None
    """State letter at the end of the window."""
    tracer_pid: int | None = None
    nice: int | None = None
    thread_count: int | None = None
    rss_bytes: int | None = None
    cpu_s: float | None = None
    """CPU time of the whole process during `window_s`."""
    window_s: float | None = None
    read_bytes: int | None = None
    """Bytes read through system calls during the window (rchar)."""
    written_bytes: int | None = None
    context_switches: int | None = None
    """Voluntary and involuntary, during the window."""
    cgroup: str | None = None
    cwd: str | None = None
    job_id: str | None = None
    """Ray job id in hex, from ``RAY_JOB_ID``."""
    raylet_pid: int | None = None
    """From ``RAY_RAYLET_PID``: survives orphaning."""
    env: dict[str, str] = {}
    """Allowed variables as the process was started."""
    env_now: dict[str, str] | None = None
    """The same as they are now, from libc's ``environ``; None when memory could not be read."""
    python: str | None = None
    """``3.11`` where known; None for a process that is not Python or could not be told."""
    threads: tuple[Thread, ...] = ()
    samples: tuple[Sample, ...] = ()
    sockets: tuple[Socket, ...] | None = None
    files: tuple[OpenFile, ...] | None = None
    object_refs: tuple[ObjectRefWait, ...] = ()
    async_tasks: tuple[AsyncTask, ...] | None = None
    log_lines: tuple[LogLine, ...] = ()


class LogLine(Fact, frozen=True, kw_only=True):
    """A line of a log that matched a known error; only matches are kept, never whole logs."""

    file: str
    line_number: int
    text: str
    signature: str
    """Id of the signature that matched."""
    time_s: float | None = None


# --- GPUs and communicators ------------------------------------------------------------------------------------------


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


# --- one node --------------------------------------------------------------------------------------------------------


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
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
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
    locks: tuple[FileLock, ...] = ()
    gpus: tuple[Gpu, ...] | None = None
    flight_records: tuple[FlightRecord, ...] = ()
    communicators: tuple[tuple[RasCommunicator, ...], ...] | None = None
    """One tuple of communicators per poll of NCCL RAS; None when RAS was not reachable."""
    log_lines: tuple[LogLine, ...] = ()
    """Matches in logs that belong to no collected process (raylet, gcs)."""
    gaps: tuple[Gap, ...] = ()


# --- Ray's own tables ------------------------------------------------------------------------------------------------


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
    error: str | None = None


class TaskHistory(Fact, frozen=True, kw_only=True):
    """How long finished tasks of one name took: what is usual for this run."""

    name: str
    count: int
    longest_s: float
    last_end_time_s: float | None = None


class RayPlacementGroup(Fact, frozen=True, kw_only=True):
    placement_group_id: str
    state: str
    """``PENDING``, ``PREPARED``, ``CREATED``, ``RESCHEDULING``, ``REMOVED``."""
    name: str | None = None
    job_id: str | None = None
    bundles: tuple[dict[str, float], ...] = ()
    bundle_nodes: tuple[str | None, ...] = ()
    strategy: str | None = None
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
    tasks_dropped: int | None = None
    history: tuple[TaskHistory, ...] = ()
    placement_groups: tuple[RayPlacementGroup, ...] = ()
    core_workers: tuple[CoreWorker, ...] = ()
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


class NodeClock(Fact, frozen=True, kw_only=True):
    """A node's wall clock against the clock of the machine that gathered, by pings of the node's agent."""

    node: str
    at_time_s: float
    """When, by the clock of the machine that gathered."""
    ahead_s: float
    """How much the node's clock is ahead of it."""
    bound_s: float
    """Half of the fastest ping's round trip: `ahead_s` is right within this."""


# --- the whole capture -----------------------------------------------------------------------------------------------


class Snapshot(Fact, frozen=True, kw_only=True, omit_defaults=False):
    """All facts of one capture: a file that can be mailed and analysed anywhere."""

    schema: str = SCHEMA
    tool_version: str = ""
    taken_time_s: float
    job_id: str | None = None
    """The Ray job this capture was narrowed to; None for all."""
    nodes: tuple[Node, ...] = ()
    ray: RayState | None = None
    gaps: tuple[Gap, ...] = ()
    clocks: tuple[NodeClock, ...] = ()
    """Two or more per node: before and after the collection."""
    options: dict[str, str | int | float | bool] = {}
    timing: dict[str, float] = {}
