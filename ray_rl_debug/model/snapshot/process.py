"""One process: its stacks, threads, sockets, files, waits and coroutines."""

from __future__ import annotations

from ray_rl_debug.model.snapshot.descriptors import Descriptors
from ray_rl_debug.model.snapshot.engine import EngineState
from ray_rl_debug.model.snapshot.fact import Fact
from ray_rl_debug.model.snapshot.from_memory import TorchGroups
from ray_rl_debug.model.snapshot.remark import Remark


class Frame(Fact, frozen=True, kw_only=True):
    """One place in a stack. Interned once per node in `Node.frames`."""

    function: str
    """Qualified where the interpreter knows it: ``ActorRolloutRefWorker.update_actor``."""
    file: str
    """Path below site-packages where there is one, else the full path."""
    line: int | None = None
    calls: tuple[str, ...] | None = None
    """Names that this line calls or whose result it waits on, as its source tells; of innermost frames of own code. None: not read."""
    apart: bool | None = None
    """Of a line that sleeps: whether the function around it can hand nothing to the rest of the program, as its source tells. None: not read."""
    looks: tuple[str, ...] | None = None
    """Of a line that pauses in a loop until something has come: names that the condition of the loop calls, empty where it looks at variables
    alone, as its source tells. None: not read, no such loop, or one that gives up by itself."""
    brings: bool | None = None
    """Of a line that waits for a condition, an event or a queue: whether the function around it also brings what it waits for, as its source tells.
    None: not read."""
    goes_round: bool | None = None
    """Of a line that pauses: whether it lies in a loop that nothing ends, as its source tells. None: not read."""
    ended_by: tuple[str, ...] | None = None
    """Of a line that pauses: methods of its class that set the flag which alone ends its loop, as its source tells. None: not read, no such loop."""
    gives_up: bool | None = None
    """Of a line that pauses: whether it lies in a loop of its function that gives up after a time, as its source tells. None: not read."""
    wants: str | None = None
    """Of a line that takes a lock: which one, ``Buffer.lock``, ``STATE``, as its source tells. None: not read, or its name does not tell which."""
    under: tuple[str, ...] | None = None
    """The locks, named so, whose ``with`` statements hold the line in its function, outermost first. None: not read, or none."""


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


class InC(Fact, frozen=True, kw_only=True):
    """What a thread did in C and C++ where it ran at one place of Python through the window, read once behind it."""

    tid: int
    stack: int
    """The place: index into `Node.stacks`."""
    calls: int
    """The functions of C with names, innermost first: another index into `Node.stacks`. The outermost was called from `stack`. An empty
    stack: the interpreter itself ran."""


class Sample(Fact, frozen=True, kw_only=True):
    """The stacks of one process at one moment."""

    at_s: float
    """When its stacks had been read."""
    threads: tuple[ThreadSample, ...]
    source: str = "py-spy"
    """``py-spy``, ``py-spy --nonblocking``, ``pystack``, ``faulthandler``; of imported files also ``traceback``, ``gdb``, ``collective``
    (torch's stack of a failed collective), ``kernel`` (/proc/PID/stack) and ``text`` (frames without a tool's head)."""
    native: bool = False
    file: str | None = None
    """The imported file that holds it."""
    line: int | None = None
    """Where it begins in that file, from 1."""


class Thread(Fact, frozen=True, kw_only=True):
    """What the kernel says of one thread over the sampling window."""

    tid: int
    comm: str
    state: str
    """One letter of ``/proc/PID/task/TID/stat``: R, S, D, T, t, Z, X, I."""
    wchan: str | None = None
    syscall: int | None = None
    """System call number, or None when running or not readable. What it means depends on the machine: see `call`."""
    call: str | None = None
    """Name of that system call (``futex``, ``epoll_wait``). None for a call in which nobody waits, and in older snapshots."""
    syscall_arg0: int | None = None
    """First argument of the call in progress: a file descriptor for read, recv, flock; the awaited child, -1 for any; else rarely useful."""
    waits_on_fds: tuple[int, ...] | None = None
    """Descriptors that the call in progress waits for (poll, select, epoll, read, recv, accept, write, send, connect), ascending.
    Of the main thread and those with a Python stack; None: another call, not readable, or too many."""
    wakes_in_s: float | None = None
    """Seconds at most, from the end of the window, until the sleep in progress ends by itself, or a wait for a thread or at descriptors with a limit.
    Of the main thread and those with a Python stack; None: another call, a wait without a limit, or not readable."""
    in_shared: bool | None = None
    """Of a wait at a futex: whether it is in memory that processes share, so that another one may end it.
    Of the main thread and those with a Python stack; None: another call, or not readable."""
    cpu_s: float | None = None
    """CPU time, user and system, spent during the window."""
    run_slices: int | None = None
    """Times the scheduler let it run during the window (third figure of schedstat): next to none for a thread that sleeps."""
    queued_s: float | None = None
    """Time of the window that it was ready to run and had no core (second figure of schedstat)."""


MAX_FILES = 200
"""Kept per process, files and devices."""
MAX_SOCKETS = 512
"""Kept per process; a server with more is told by its first ones, of those in ``CLOSE_WAIT`` last."""


class Socket(Fact, frozen=True, kw_only=True):
    """One socket that a process holds."""

    family: str
    """``tcp``, ``tcp6``, ``udp``, ``udp6`` or ``unix``."""
    state: str
    """``ESTABLISHED``, ``LISTEN``, ``CLOSE_WAIT``, ``SYN_SENT``, ...; ``UNCONNECTED`` of a UDP socket to which anybody may send."""
    local: str
    """``ip:port``; for Unix sockets the path or empty."""
    remote: str | None = None
    """The other end in the same form; None for a listener, and for a Unix socket whose other end is not known."""
    inode: int | None = None
    peer_inode: int | None = None
    """The other end of a Unix socket, where ``ss``/sock_diag tells."""
    queued_at: int | None = None
    """Of a client of a Unix socket: the listener in whose queue it waits to be accepted."""
    fd: int | None = None
    tx_queue_bytes: int | None = None
    rx_queue_bytes: int | None = None
    """Of a listener: connections that wait to be accepted."""
    retransmits: int | None = None
    bytes_sent: int | None = None
    """Acknowledged by the other end since the connection was made."""
    bytes_received: int | None = None
    quiet_s: float | None = None
    """Seconds since data last came in, at the end of the window."""


class OpenFile(Fact, frozen=True, kw_only=True):
    """A file, FIFO, pipe or device a process holds open, what the kernel alone writes to (eventfd, timer, news of folders, end of a process), or a
    segment in /dev/shm that it maps (regular libraries are left out)."""

    fd: int | None = None
    """None for a segment that is mapped and not held open."""
    path: str
    """As the kernel names it, also ``/dev/shm/psm_1a2b (deleted)``; ``pipe:[INODE]``; ``eventfd:[ID]``, where equal ids are one eventfd;
    ``inotify``, ``timerfd``, ``pidfd``."""
    kind: str
    """``file``, ``fifo``, ``pipe``, ``device``, ``eventfd``, ``inotify``, ``timerfd``, ``pidfd``."""
    inode: int | None = None
    device: str | None = None
    """``major:minor`` in hex as in /proc/locks."""
    writable: bool | None = None
    mount: str | None = None
    """``type source`` of the mount for network file systems (nfs, fuse, lustre, ...)."""
    written_time_s: float | None = None
    """Unix time of the last write, of a file that is standard output or error: a log. None: another file, or on a network mount."""
    terminal: int | None = None
    """Number of the pseudo-terminal that it is an end of: ``/dev/pts/N``, or the ``/dev/ptmx`` of whoever has opened it for others."""
    watches: int | None = None
    """Of an inotify: how many files and folders it gives news of. The kernel takes those away that are removed."""
    watched: tuple[str, ...] = ()
    """The first of these, as ``device inode`` in the form of the two fields above."""
    fires_in_s: float | None = None
    """Of a timerfd: seconds until it fires, when it was read; None: it is not set."""
    is_locked: bool | None = None
    """Of a file: does this open file have a lock of its own (``F_OFD_SETLK``)? The kernel's table of locks does not tell whose it is."""
    of_pid: int | None = None
    """Of a pidfd: the process whose end it tells; None: that has ended, or is not of our machine."""


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
    apart: bool | None = None
    """As of a `Frame`; of the first coroutine of one that sleeps."""
    takes: bool | None = None
    """Of the same: whether the pause lies in a loop over what it is sent, as its source tells. None: not read."""
    looks: tuple[str, ...] | None = None
    """As of a `Frame`; of the innermost coroutine of own code."""
    brings: bool | None = None
    """Of the same: whether what it waits for, or looks at again, comes with another request to the same server, as its source tells."""
    goes_round: bool | None = None
    """As of a `Frame`, of the same."""


class Awaited(Fact, frozen=True, kw_only=True):
    """What an asyncio task finally waits for."""

    kind: str
    """``future``, ``lock``, ``semaphore``, ``event``, ``condition``, ``pool``, ``queue``, ``sleep``, ``gather``, ``task``, ``socket``, ``objectref``,
    ``executor``, ``subprocess``, ``running`` (executing now), ``ready`` (waits only for its turn on the loop) or ``unknown``."""
    detail: str | None = None
    """Type name and state, e.g. ``Semaphore value=0`` or ``Queue.get empty``."""
    address: int | None = None
    """Identity of the primitive: equal addresses in one process are one lock."""
    tasks: tuple[int, ...] = ()
    """Addresses of asyncio tasks waited for (await task, gather)."""
    first: bool = False
    """The first of `tasks` that ends is enough."""
    object_id: str | None = None
    value: int | None = None
    """Permits of a semaphore, items of a queue."""
    fd: int | None = None
    pid: int | None = None
    """Of the child process whose end or output is awaited."""
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
    timer_s: float | None = None
    """Seconds until the next timer of the loop is due, negative when that is late; None where it has none, or does not tell (uvloop)."""
    timers: int | None = None
    """How many timers of the loop are to come, that of each sleeping coroutine among them; None where it does not tell."""
    gives_up_s: float | None = None
    """Seconds until a limit that it has set itself (``asyncio.timeout``) ends its wait; None where it has set none, or that cannot be told."""
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
    """State letter at the end of the window; ``t`` only where a tracer does not let go. None: not known."""
    exit_code: int | None = None
    """Of a dead process: exit status, or minus the signal that ended it. None: it lives, or that may not be read."""
    tracer_pid: int | None = None
    nice: int | None = None
    thread_count: int | None = None
    child_count: int | None = None
    """How many children it has, those that have ended and were not waited for among them, at the end of the window. None: not counted."""
    rss_bytes: int | None = None
    cpu_s: float | None = None
    """CPU time of the whole process during `window_s`."""
    window_s: float | None = None
    """Measured between the two looks at this process."""
    read_bytes: int | None = None
    """Bytes read through system calls during the window (rchar)."""
    written_bytes: int | None = None
    context_switches: int | None = None
    """Voluntary and involuntary, during the window."""
    cgroup: str | None = None
    frozen_by: str | None = None
    """The control group that was frozen at both looks, as ``docker pause`` leaves it: nothing of it runs. None: it is not, or that was not read."""
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
    idle_threads: dict[str, int] = {}
    """Further threads by name, each of which rested through the window in the same call as one of `threads`."""
    samples: tuple[Sample, ...] = ()
    in_c: tuple[InC, ...] = ()
    """Of threads that ran at one place, in a process that uses an accelerator: whether they work or wait for it. Empty also where nobody asked."""
    sockets: tuple[Socket, ...] | None = None
    files: tuple[OpenFile, ...] | None = None
    descriptors: Descriptors | None = None
    object_refs: tuple[ObjectRefWait, ...] = ()
    object_refs_before: tuple[ObjectRefWait, ...] = ()
    """What it waited for at an earlier sample, where that was something else: it got what it asked for."""
    async_tasks: tuple[AsyncTask, ...] | None = None
    torch: TorchGroups | None = None
    """None: no groups, or they were not read."""
    log_lines: tuple[LogLine, ...] = ()
    engine: EngineState | None = None
    """Of the process that serves an inference engine over HTTP; None: it is none, or was not asked."""
    remarks: tuple[Remark, ...] = ()
    """What an imported file says of it beside its stacks."""


class EndedProcess(Fact, frozen=True, kw_only=True):
    """A process that was there at the start of the window and is gone at its end: its parent took its exit status."""

    pid: int
    ppid: int | None = None
    title: str
    kind: str = "other"
    start_time_s: float | None = None
    was_dead: bool = False
    """A zombie at the start; else it lived then."""
    exit_code: int | None = None
    """Of a zombie, as `Process.exit_code`."""


class LogLine(Fact, frozen=True, kw_only=True):
    """A line of a log that matched a known error; only matches are kept, never whole logs."""

    file: str
    line_number: int
    text: str
    signature: str
    """Id of the signature that matched."""
    time_s: float | None = None
