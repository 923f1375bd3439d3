"""Where a thread stands: the kind of place its innermost frames show, and the first frame of somebody's own code.

Collective, rendezvous and Ray frames are known by function and file, from the outside in: a stack is in a collective when torch's
own frames are the innermost ones. C calls (``socket.recv``, ``open``, ``Lock.acquire``, ``time.sleep``) leave no frame; there the
kernel's wait channel and system call decide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ray_rl_debug.analyze.engine_places import coordinated, engine_place, paired, sharded
from ray_rl_debug.analyze.framework_places import place_in_libraries
from ray_rl_debug.analyze.frameworks import ONE_AT_A_TIME, spot_of
from ray_rl_debug.analyze.kernel_calls import CONNECTIONS, NEWS, NO_NEWS, TIMER, kernel_call
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, Kind
from ray_rl_debug.analyze.library_frames import is_library, short_name
from ray_rl_debug.analyze.library_places import pauses_before_retry
from ray_rl_debug.analyze.native_frames import is_at_condition, is_at_mutex, is_native, native_call, native_ray_call, native_wait, wants_interpreter
from ray_rl_debug.analyze.telling_locals import peer_of, waiter_of
from ray_rl_debug.analyze.torch_calls import CALLS_OF_TORCH, COLLECTIVES, P2P, ROOTED, STORE, is_bare_call
from ray_rl_debug.model.snapshot import Frame, Thread, ThreadSample


class Place(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where one thread stands in one sample."""

    kind: Kind
    op: str
    """The telling function: ``all_reduce``, ``get``, ``is_equiv_loop``."""
    own: int | None
    """Position of the innermost frame outside the libraries we know; None when there is none."""
    path: tuple[tuple[str, str, int | None], ...]
    """Function, file and line of every frame of own code, innermost first."""
    peer: int | None = None
    """The rank that a recv, send or rooted collective names, from torch's own locals."""
    timed: bool = False
    """A system call with a clock: it comes back by itself."""
    spins: bool = False
    """A wait that uses a whole core: being busy there is no progress."""
    waiter: str | None = None
    """What this one wait alone has: the lock that it was made with, or the number of what it waits for. Another one is another wait."""
    was_left: bool = False
    """The kernel, asked a moment later, met the thread in a call that does not belong to this place."""
    on_loop: bool = False
    """Below an event loop: while this lasts, no coroutine of that loop runs."""


WORK_WAIT = "work.wait"
"""Operation of a place that waits for a torch operation begun earlier, which one is not known."""
_RETRIES = ("opentelemetry/exporter/", "tenacity/")
"""Libraries that pause between two tries by an event's wait with a time limit."""
_STORE = frozenset({"wait", "get"})
"""Calls of a store that come back when another rank has set the key; in C, so that only the line shows them."""
_ASKS = re.compile(r"(?:requests|httpx|urllib3?|urllib\.request|aiohttp)\.(?:\w{1,30}\.)?(?:get|post|put|delete|request|urlopen|send)$")
"""Calls of clients of HTTP."""
_LOCKS_FILE = re.compile(r"(?:^|[_.])(?:flock|lockf|lock_?file|file_?lock)$")
"""Functions that are called after what they do in C: to take the lock on a file."""
_TAKES = frozenset({"acquire", "__enter__"})
"""What takes a lock, in C."""
_TORCH_SLEEPS = ("torch/autograd/", "torch/nn/parallel/", "torch/distributed/")
"""Where a member of a process group that sleeps below a frame of torch waits for the others (DDP: in the backward pass)."""
_FILE_LIBRARIES = ("torch/serialization.py", "safetensors/torch.py", "pyarrow/parquet/core.py")
"""Libraries that read and write files in C: a thread that is off the CPU there waits for one."""
RETRIED = "a request that failed and is tried again"
INTERPRETER = "the interpreter's lock (GIL)"
"""Operation of a thread that wants it, where nobody measured for how long."""
LIBRARY_THREADS = "other threads of the library that it has called"
"""Operation of a thread that waits at a condition of C++ below a call of its own code."""
OF_KERNEL = {NEWS: "news of the files that it watches", NO_NEWS: "news of files that are no longer there", TIMER: "its timer"}
"""Operations of threads that wait for what the kernel tells."""
SYSTEM_V = "a semaphore of System V"
"""Operation of a thread that waits at one."""
STORE_KEY = "a wait for a key of torch's store"
"""The call of a rank that waits there in the program's own code: it sets up no group."""
_CALL_KIND = {
    "open": Kind.FILE, "fsync": Kind.FILE, "flock": Kind.FLOCK, "fcntl": Kind.FLOCK, "recv": Kind.SOCKET, "send": Kind.SOCKET,
    "connect": Kind.SOCKET, "accept": Kind.SOCKET, "wait": Kind.CHILD, "sleep": Kind.SLEEP, "futex": Kind.LOCK, "read": Kind.FILE,
    "write": Kind.FILE, "pread": Kind.FILE, "pwrite": Kind.FILE, "poll": Kind.CHANNEL,
    "message": Kind.CHANNEL, "semaphore": Kind.CHANNEL,
}  # fmt: skip


_NATIVE_RAY = {"Get": Kind.RAY_GET, "Wait": Kind.RAY_WAIT, "idle": Kind.RAY_IDLE}
_SAYS_LITTLE = frozenset({Kind.CODE, Kind.LOCK, Kind.CUDA, Kind.FILE, Kind.CHANNEL, Kind.SLEEP})
"""Kinds of places that a native frame may tell more exactly."""
_LOOP_RUNNERS = frozenset({"_run_once", "run_forever", "run_until_complete"})


def place_of(
    frames: Sequence[Frame],
    sample: ThreadSample | None = None,
    thread: Thread | None = None,
    *,
    runs_loop: bool = False,
    in_task: bool = False,
    in_group: bool = False,
) -> Place:
    """The place of one stack (innermost first); the kernel's view of the thread settles what C calls hide.

    Args:
        frames: The stack.
        sample: The thread as sampled, for torch's locals and activity.
        thread: The thread as the kernel sees it.
        runs_loop: The thread is known to run an event loop (uvloop leaves no frame of its own).
        in_task: That loop is known to execute a task at this moment.
        in_group: The process is a member of a torch process group.
    """
    native = next((i for i, f in enumerate(frames) if not is_native(f)), len(frames))
    if native:
        return _below_native(frames, native, sample, thread, runs_loop=runs_loop, in_task=in_task, in_group=in_group)
    place = _place(frames, sample, thread, kernel_call(thread), runs_loop=runs_loop, in_task=in_task, in_group=in_group)
    return _at_interpreter(place) if thread is None and sample is not None and sample.waits_for_gil else place


def _at_interpreter(place: Place) -> Place:
    """The place of a thread that wants the interpreter's lock: whatever else its stack shows, it runs when it has that."""
    if place.kind not in _SAYS_LITTLE and place.path:
        return place
    return msgspec.structs.replace(place, kind=Kind.LOCK, op=INTERPRETER, timed=False)


def _below_native(
    frames: Sequence[Frame], native: int, sample: ThreadSample | None, thread: Thread | None, *, runs_loop: bool, in_task: bool, in_group: bool
) -> Place:
    """The place that Python's frames show, with what the native ones above them add: the system call, a wait for the GPU or for other ranks."""
    call = kernel_call(thread) or native_call(frames)
    python = frames[native:]
    if not python:
        kind = _CALL_KIND.get(call or "", Kind.CODE)
        kind = Kind.EVENT if kind is Kind.LOCK and not is_at_mutex(frames) else kind
        place = Place(kind=kind, op=short_name(frames[0].function), own=None, path=())
        if (asked := native_ray_call(frames)) is not None:
            place = msgspec.structs.replace(place, kind=_NATIVE_RAY[asked], op=asked.lower())
    else:
        place = _place(python, None, thread, call, runs_loop=runs_loop, in_task=in_task, in_group=in_group)
        place = with_locals(place, sample, frames) if sample is not None else place
        if thread is None and sample is not None and sample.owns_gil and place.kind is Kind.IDLE:
            place = msgspec.structs.replace(place, kind=Kind.CODE)  # who only waits for work has given the interpreter away
        if place.kind is Kind.LOCK and is_at_condition(frames) and not is_at_mutex(frames):
            place = msgspec.structs.replace(place, kind=Kind.EVENT, op=LIBRARY_THREADS)
    if thread is None and (wants_interpreter(frames) or (sample is not None and sample.waits_for_gil)):
        place = _at_interpreter(place)
    waits = native_wait(frames)
    if waits is not None and (place.kind in _SAYS_LITTLE or not python):
        place = msgspec.structs.replace(place, kind=waits[0], op=waits[1], timed=False)
    return msgspec.structs.replace(place, own=place.own + native if place.own is not None else None)


def _place(
    frames: Sequence[Frame],
    sample: ThreadSample | None,
    thread: Thread | None,
    call: str | None,
    *,
    runs_loop: bool,
    in_task: bool,
    in_group: bool,
) -> Place:
    names = [short_name(f.function) for f in frames]
    is_text = _is_program_text(frames) or _is_in_c_for_pool(frames)
    own = 0 if is_text else next((i for i, f in enumerate(frames) if not (is_library(f) or is_bare_call(f))), None)
    path = own_path(frames)
    inner = range(own if own is not None else len(frames))
    on_loop = runs_loop or any(n in _LOOP_RUNNERS and "asyncio" in f.file for n, f in zip(names, frames, strict=True))
    if "sync_to_async" in {part for f in frames for part in f.function.split(".")}:
        on_loop = False  # Ray runs a synchronous method of an async actor there: nobody else's loop is blocked by mistake
    if any(spot_of(ONE_AT_A_TIME, f.function, f.file) is not None for f in frames):
        on_loop = False
    kind, op = place_in_libraries(frames, names, inner, thread)
    timed = False
    ran = may_have_left(thread)
    was_left = kind in _NEVER_SLEEP and (call == "wait" or (ran and call == "sleep"))
    was_left = was_left or (kind is Kind.CHILD and names[0] == "_try_wait" and call in _NO_WAIT_FOR_CHILD)
    kind, op, spins = engine_place(frames, names, own, kind, op, call)
    if kind is Kind.CUDA and own is not None and (together := coordinated(frames, own) or sharded(frames, own)) is not None:
        kind, op = Kind.COLLECTIVE, together  # the GPU has the collective in its queue, and waits for the other ranks
    if kind is Kind.EVENT and any(frames[i].file.startswith(_RETRIES) for i in inner):
        kind, op, timed = Kind.SLEEP, "the pause before the next try", True
    if thread is None and kind in (None, Kind.EVENT, Kind.SLEEP) and pauses_before_retry(frames):
        kind, op = Kind.SOCKET, RETRIED  # the pause is no progress: nobody measured whether it gets through
    if kind is None:
        if own is None and thread is None and frames and sample is not None and sample.name == "MainThread" and not _begins_thread(names):
            kind, op = Kind.LOCK if _takes_lock(frames[0], sample) else Kind.CODE, names[0]  # only the inner end was shown, in a library at work
        elif own is None and thread is None and sample is not None and sample.owns_gil and sample.active:
            kind, op = Kind.CODE, names[0]  # a library at work: who waits for work has given the interpreter away
        elif own is None:
            kind, op = Kind.IDLE, names[0] if names else ""
        elif call == "epoll" and not in_task and (runs_loop or (own == 0 and "poll" not in (frames[0].calls or ()))):
            kind, op = Kind.LOOP_IDLE, names[own]  # uvloop leaves no frame of its own
        else:
            kind, op, left = _in_own_code(frames, names, own, call, sample, thread, in_group=in_group)
            was_left = was_left or left
            timed = kind is Kind.SLEEP
            if kind in (Kind.CODE, Kind.LOCK) and (together := coordinated(frames, own)) is not None:
                kind, op, spins = Kind.COLLECTIVE, together, True
    if thread is not None and thread.wchan == CONNECTIONS and kind is Kind.LOOP_IDLE and own is not None and not on_loop and _is_called(names, own):
        kind, op = Kind.SOCKET, names[own]
    if thread is not None and thread.wchan in OF_KERNEL:
        kind, op = Kind.FILE, OF_KERNEL[thread.wchan]
    may_be_pair = kind in (Kind.CODE, Kind.LOCK, Kind.CUDA) or (kind is Kind.COLLECTIVE and op in ROOTED)
    if may_be_pair and own is not None and (pair := paired(frames, own)) is not None:
        kind, op, timed = Kind.P2P, pair, False
    return Place(
        kind=kind,
        op=op,
        own=own,
        path=path,
        peer=peer_of(sample, frames) if _names_peer(kind, op) else None,
        timed=timed,
        spins=spins,
        waiter=waiter_of(sample, frames),
        was_left=was_left,
        on_loop=on_loop and kind not in IDLE_KINDS,
    )


def _in_own_code(
    frames: Sequence[Frame], names: Sequence[str], own: int, call: str | None, sample: ThreadSample | None, thread: Thread | None, *, in_group: bool
) -> tuple[Kind, str, bool]:
    """The place of a thread that stands in somebody's own code, by its system call and by what the line calls; and whether it has left it since."""
    kind, op = _CALL_KIND.get(call or "", Kind.CODE), SYSTEM_V if call == "semaphore" else names[own]
    ran, was_left, calls = may_have_left(thread), False, frames[0].calls or ()
    is_active = sample.active if sample is not None else None
    if ran and kind is Kind.LOCK and own == 0 and "sleep" in calls:
        kind, was_left = Kind.SLEEP, True
    elif kind is Kind.LOCK and own == 0 and _only_sleeps(frames[0], sample):
        kind = Kind.SLEEP
    elif is_active and kind is Kind.LOCK:
        kind = Kind.CODE
    elif kind is Kind.LOCK:
        kind, op = _frameless_wait(frames, names, own, in_group) or (kind, op)
    elif kind is Kind.SLEEP and own == 0 and "sleep" not in (frames[0].calls or ("sleep",)):
        at = _frameless_wait(frames, names, own, in_group)
        (kind, op), was_left = at or (kind, op), ran and at is not None  # the line waits and does not sleep: it went on meanwhile
    elif in_group and call == "poll" and own == 0 and not _STORE.isdisjoint(calls):
        kind, op = Kind.RENDEZVOUS, STORE_KEY
    if kind is Kind.CODE and own == 0 and "sleep" in calls:
        kind = Kind.SLEEP  # met in the moment between two pauses
    if kind is Kind.CODE and thread is None and _takes_lock(frames[0], sample):
        kind = Kind.LOCK  # nobody asked the kernel
    if kind is Kind.CODE and own == 0 and thread is None and not is_active:
        kind, op = _of_call(frames[0]) or (kind, op)
    if kind is Kind.CODE and is_active is False and any(f.file.endswith(_FILE_LIBRARIES) for f in frames[:own]):
        kind, op = Kind.FILE, names[0]
    return kind, op, was_left


def _only_sleeps(frame: Frame, sample: ThreadSample | None) -> bool:
    """Does the line of a thread that is said to be in a futex sleep and do nothing else, and does it not want the interpreter?

    py-spy matches threads that C made with those of the kernel by guess, and of two of one pool may take one for the other.
    """
    return frame.calls == ("sleep",) and frame.wants is None and not (sample is not None and sample.waits_for_gil)


def _of_call(frame: Frame) -> tuple[Kind, str] | None:
    """What a line waits for by the call that it makes, or by the call as which somebody tells it."""
    if (frame.calls or ())[:1] == (STORE,):
        return Kind.RENDEZVOUS, STORE  # a class in C: its constructor waits until all have come
    if _LOCKS_FILE.search(frame.function) is not None:
        return Kind.FLOCK, short_name(frame.function)
    return (Kind.SOCKET, frame.function) if _ASKS.match(frame.function) else None


def with_cut_end(place: Place, frames: Sequence[Frame]) -> Place:
    """The place of a stack that somebody copied: where its innermost function is called as a call between ranks is, what lay below it was cut.

    A program's own function of that name calls torch's, and a tool would show that.
    """
    name = short_name(frames[0].function) if frames else ""
    if place.kind is not Kind.CODE or place.own != 0 or name not in CALLS_OF_TORCH & (COLLECTIVES | P2P):
        return place
    kind = Kind.P2P if name in P2P else Kind.COLLECTIVE
    return msgspec.structs.replace(place, kind=kind, op=name, path=place.path[1:] or place.path)


def _takes_lock(frame: Frame, sample: ThreadSample | None) -> bool:
    """Does its line of source take a lock, and was it not seen to run? Such a line calls nothing of Python."""
    return bool(_TAKES & set(frame.calls or ())) and not (sample is not None and sample.active)


def _begins_thread(names: Sequence[str]) -> bool:
    """Does the stack reach down to where a thread or a program begins?"""
    return names[-1].startswith(("_bootstrap", "<module>", "_run_module", "thread_run", "clone", "start_thread", "run", "main"))


def _is_called(names: Sequence[str], own: int) -> bool:
    """Is the library's wait for several descriptors called by own code itself, and not by a library that serves?"""
    return own == 0 or (own == 1 and names[0] == "select")


def with_locals(place: Place, sample: ThreadSample, frames: Sequence[Frame]) -> Place:
    """The place of a thread that was found without its locals, with what they tell."""
    peer = peer_of(sample, frames) if _names_peer(place.kind, place.op) else None
    return msgspec.structs.replace(place, peer=peer, waiter=waiter_of(sample, frames))


def _names_peer(kind: Kind, op: str) -> bool:
    return kind is Kind.P2P or op in ROOTED


def own_path(frames: Sequence[Frame]) -> tuple[tuple[str, str, int | None], ...]:
    """Function, file and line of every frame of own code, innermost first."""
    in_c = 0 if _is_in_c_for_pool(frames) else None
    return tuple(
        (f.function, f.file, f.line) for i, f in enumerate(frames) if i == in_c or _is_program_text(frames) or not (is_library(f) or is_bare_call(f))
    )


def _is_in_c_for_pool(frames: Sequence[Frame]) -> bool:
    """Is the innermost frame the one with which a pool calls what it was handed? That is in C then, and the program's all the same."""
    return bool(frames) and any(short_name(frames[0].function) == name and frames[0].file.endswith(file) for file, name in _CALLS_FOR_POOL)


_CALLS_FOR_POOL = (
    ("concurrent/futures/thread.py", "run"),
    ("concurrent/futures/process.py", "_process_worker"),
    ("multiprocessing/pool.py", "mapstar"),
    ("multiprocessing/pool.py", "starmapstar"),
)
"""In between they wait for the next piece of work in other functions."""


def _is_program_text(frames: Sequence[Frame]) -> bool:
    """``python -c``; with other frames around it, it starts a library's helper process."""
    return len(frames) == 1 and frames[0].file == "<string>"


def _frameless_wait(frames: Sequence[Frame], names: Sequence[str], own: int, in_group: bool) -> tuple[Kind, str] | None:
    """A thread that sleeps in C: for other ranks, where the source line or torch's own frame says so; None where it may be a lock."""
    if own > 0:
        is_torch = in_group and frames[0].file.startswith(_TORCH_SLEEPS)
        return (Kind.COLLECTIVE, names[0].removeprefix("_engine_").removeprefix("run_")) if is_torch else None
    calls = frames[0].calls or ()
    if "wait" not in calls:
        return None
    p2p = [n for n in calls if n in P2P]
    together = [n for n in calls if n in COLLECTIVES]
    if p2p and not together:
        return Kind.P2P, next((n for n in p2p if "recv" in n), p2p[0])
    if together or in_group:
        return Kind.COLLECTIVE, together[0] if len(together) == 1 and not p2p else WORK_WAIT
    return None


_LEFT_SLICES = 12
"""Times a thread ran in the window, above which it may be elsewhere by now: one that stands is only woken by the looks."""


def may_have_left(thread: Thread | None) -> bool:
    """Did the thread run often enough to have come from where it was sampled to where the kernel met it later?"""
    return thread is not None and (thread.run_slices or 0) > _LEFT_SLICES


_NO_WAIT_FOR_CHILD = frozenset({"write", "open", "fsync", "send", "connect"})
"""System calls in which nobody waits for the end of a child."""
_NEVER_SLEEP = frozenset({Kind.EVENT, Kind.QUEUE, Kind.JOIN, Kind.FUTURE, Kind.LOCK, Kind.MP_QUEUE, Kind.SOCKET})
"""Places in which no thread is found in the kernel's sleep, or in its wait for the end of a child."""
