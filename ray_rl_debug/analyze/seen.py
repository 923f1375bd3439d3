"""One process as the rules see it, and places in words."""

from __future__ import annotations

from functools import lru_cache

import msgspec
from msgspec.structs import force_setattr

from ray_rl_debug.analyze.by_hand import is_assumed, source_of
from ray_rl_debug.analyze.coroutines import Coroutines, End
from ray_rl_debug.analyze.groups import GroupId
from ray_rl_debug.analyze.identity import Identity
from ray_rl_debug.analyze.kernel_calls import at_mount, kernel_call
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, Kind
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.nodes import NodeKind, kind_of
from ray_rl_debug.analyze.places import INTERPRETER, OF_KERNEL, RETRIED, SYSTEM_V, Place
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.model.report import Who
from ray_rl_debug.model.snapshot import CoreWorker, Node, Process, RayActor, Thread

NO_NODE = "imported"
"""What a node is called that no file names."""


class Seen(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One process as the rules see it."""

    key: str
    """That of its identity."""
    identity: Identity
    process: Process
    node: Node
    threads: tuple[SeenThread, ...]
    """Threads of the last sample, most telling first; empty without stacks."""
    telling: SeenThread | None
    followed: SeenThread | None
    """The thread the telling one waits for inside the process."""
    places: tuple[Place, ...]
    """The telling thread's place in each sample."""
    looks: int
    """How often it was looked at, as far as is known: some samples may have been lost, and each look wakes a thread."""
    group: GroupId | None = None
    """The process group in which it waits for other ranks, where that is known."""
    phase: str | None
    motion: Motion
    motion_reason: str
    core: CoreWorker | None
    actor: RayActor | None
    coroutines: Coroutines | None = None
    """Its asyncio tasks; None where it has none, or they were not read."""
    left: tuple[SeenThread, ...] = ()
    """Its threads of C that an earlier look met in the program, and the last did not."""
    lane_of: str | None = None
    """Of a lane: the key of its process. None: a process as a whole."""
    # these follow from the others, and are asked tens of times of each process
    place: Place | None = None
    """Where the telling thread stands."""
    kind: Kind | None = None
    """Of that place."""
    kinds: frozenset[Kind] = frozenset()
    """Of the places of all its threads."""
    is_stopped: bool = False
    """By a signal, a frozen control group, or a tracer that holds it; one that gets somewhere is only looked at."""
    has_ended: bool = False
    """Is it a zombie, of which the kernel keeps the exit status only?"""

    def __post_init__(self) -> None:
        place, state = self.telling.place if self.telling is not None else None, self.process.state
        force_setattr(self, "place", place)
        force_setattr(self, "kind", place.kind if place is not None else None)
        force_setattr(self, "kinds", _set_of(tuple([t.place.kind for t in self.threads])))
        held = state == "t" or self.process.frozen_by is not None
        force_setattr(self, "is_stopped", state == "T" or (held and self.motion is not Motion.MOVING))
        force_setattr(self, "has_ended", state in ("Z", "X"))

    @property
    def ends(self) -> tuple[End, ...]:
        """What the waiting of its coroutines ends at, the most telling first."""
        return self.coroutines.ends if self.coroutines is not None else ()

    @property
    def process_key(self) -> str:
        """The key of the process that it is, or is a lane of."""
        return self.lane_of or self.key

    @property
    def is_at_work(self) -> bool:
        """Was it seen to run or to get somewhere?"""
        return self.motion in (Motion.MOVING, Motion.BUSY)

    @property
    def is_assumed(self) -> bool:
        """Was it looked at once, or within moments, so that standing still is an assumption?"""
        return is_assumed(self.process)

    @property
    def age_s(self) -> float | None:
        """Seconds from the start of the process to the end of the window, by the clock of its node."""
        start_s = self.process.start_time_s
        return max(0.0, self.node.started_time_s + self.node.window_s - start_s) if start_s is not None else None

    @property
    def is_idle(self) -> bool:
        """Has nothing to do: no running method, no telling thread that works."""
        if self.telling is not None:
            return self.telling.place.kind in IDLE_KINDS
        is_unread = any(r.kind == "unread" for r in self.process.remarks)
        return self.process.kind == "ray-worker" and self.identity.method is None and not is_unread and not self.is_before_worker

    @property
    def kept_by(self) -> Thread | None:
        """Of one that has ended: its thread that the kernel cannot end, as it stands in a call that no signal breaks off."""
        return next((t for t in self.process.threads if t.state == "D"), None) if self.has_ended else None

    @property
    def stopped_how(self) -> str:
        """Of one that is stopped: ``frozen with its control group /freezer/docker/1f``, ``stopped (state T)``."""
        group = self.process.frozen_by
        return f"frozen with its control group {group}" if group is not None else f"stopped (state {self.process.state})"

    @property
    def is_before_worker(self) -> bool:
        """Is it a program through which Ray starts a worker, and no worker yet? Without Python it runs no calls."""
        process = self.process
        is_told = self.core is not None or self.actor is not None or not process.title or process.title.startswith("ray::")
        return process.kind == "ray-worker" and process.python is None and not self.threads and not is_told

    def who(self, *, task: str | None = None, thread: str | None = None) -> Who:
        i = self.identity
        return Who(
            label=i.label,
            node=i.node,
            pid=i.pid or None,
            actor=i.actor,
            class_=i.class_name,
            task=task or (f"{i.class_name}.{i.method}" if i.method and i.class_name else i.method),
            world=i.role or i.class_name if i.rank is not None else None,
            rank=i.rank,
            thread=thread or (self.telling.name if self.telling else None),
            role=i.role,
        )

    @property
    def name(self) -> str:
        """The label without the pid that some labels end with."""
        return self.identity.label.removesuffix(f" (pid {self.identity.pid})")

    @property
    def part_name(self) -> str:
        """The label, of a lane with its method (``Store.get``), of a thread with its name (``Store, thread requests``)."""
        if self.lane_of is None:
            return self.identity.label
        thread = self.telling.called if self.telling is not None and kind_of(self.key) is NodeKind.THREAD else None
        return f"{self.name}, thread {thread}" if thread is not None else f"{self.identity.label}.{self.identity.method}"

    def where(self) -> str:
        """``actor/3 (node7 pid 4211)``; without what a file does not tell."""
        # a file that was given alone lies in a folder that says nothing
        node = "" if self.identity.node.startswith(NO_NODE) or self.names_node else self.identity.node
        told = " ".join(x for x in (node, f"pid {self.identity.pid}" if self.identity.pid else "") if x)
        return f"{self.name} ({told})" if told else self.name

    @property
    def names_node(self) -> bool:
        """Is the machine a part of its name? A process whose number no file tells is called after its machine."""
        return self.name.endswith(f" on {self.identity.node.partition(':')[0]}")

    @property
    def source(self) -> str | None:
        """``node7.txt:12``: where its stack stands, of files that somebody gave."""
        return source_of(self.process)

    def at(self) -> str:
        """``all_reduce at dp_actor.py:30`` for the telling thread; the running method without stacks."""
        if self.has_ended:
            return "has ended"
        if self.telling is None and self.process.window_s is None and self.process.remarks:
            return "in the kernel (state D)" if self.process.state == "D" else "at a place that could not be read"
        if self.telling is not None:
            return describe_place(self.telling.place)
        if self.identity.method or (self.process.kind == "ray-worker" and not self.is_before_worker):
            return f"runs {self.identity.method}" if self.identity.method else "idle"
        first = next(iter(self.process.threads), None)
        if (wchan := at_mount(first)) is not None:
            return f"in a call on a file of a mount ({wchan})"
        call = kernel_call(first)
        return f"in the system call {call}" if call is not None else "at a place that was not read"

    def does(self) -> str:
        """The same after a subject: ``waits in all_reduce ...``, ``is in grade (reward.py:5)``."""
        text = self.at()
        return (
            text
            if text.partition(" ")[0] in (*_MANY, "pauses")
            else f"is {text}"
            if text != "event loop without work"
            else "runs an event loop without work"
        )

    def they(self) -> str:
        """The same of several: ``wait in all_reduce in step (train.py:40)``."""
        first, _, rest = self.at().partition(" ")
        return f"{_MANY.get(first, f'are {first}')} {rest}".rstrip()

    def inside(self) -> str:
        """The same as the object of "wait in": ``all_reduce in step (train.py:40)``, or where it pauses: ``step (train.py:40)``."""
        text = self.at()
        return text.removeprefix("waits in ") if text.startswith("waits in ") else text.partition(" in ")[2] or text


@lru_cache(maxsize=1 << 10)
def _set_of(kinds: tuple[Kind, ...]) -> frozenset[Kind]:
    """Equal sets are one: a cluster has few, and very many processes."""
    return frozenset(kinds)


def as_verb(text: str) -> str:
    """What a place is called, after a subject: ``waits in recv``, ``is in grade (reward.py:5)``."""
    if text == "event loop without work":
        return "runs an event loop without work"
    return text if text.partition(" ")[0] in _MANY else f"is {text}"


_MANY = {"has": "have", "waits": "wait", "sleeps": "sleep", "joins": "join", "runs": "run", "pauses": "pause"}


_WORDS = {
    Kind.COLLECTIVE: "waits in {op}",
    Kind.P2P: "waits in {op}",
    Kind.RENDEZVOUS: "waits in {op}",
    Kind.NEW_GROUP: "waits in {op}",
    Kind.DESTROY: "waits in destroy_process_group",
    Kind.RAY_GET: "waits in ray.get",
    Kind.RAY_WAIT: "waits in ray.wait",
    Kind.RAY_INIT: "waits in ray.init",
    Kind.JOIN: "joins a thread",
    Kind.FUTURE: "waits for a future",
    Kind.EVENT: "waits for an event or condition",
    Kind.QUEUE: "waits at a queue",
    Kind.LOCK: "waits for a lock",
    Kind.CHILD: "waits for a child process",
    Kind.DATALOADER: "waits for a DataLoader worker",
    Kind.MP_QUEUE: "waits at a multiprocessing queue",
    Kind.CHANNEL: "waits for a message",
    Kind.SOCKET: "waits at a socket",
    Kind.FILE: "waits in a file call",
    Kind.FLOCK: "waits for a file lock",
    Kind.SLEEP: "sleeps",
    Kind.CUDA: "waits for the GPU",
    Kind.RAY_IDLE: "idle (waits for a Ray call)",
    Kind.LOOP_IDLE: "event loop without work",
    Kind.IDLE: "idle",
    Kind.WATCH: "idle (watches other processes)",
    Kind.CODE: "runs",
}


_NAMED = frozenset({INTERPRETER, SYSTEM_V, *OF_KERNEL.values()})


def describe_place(place: Place) -> str:
    """One line: what the thread does and where."""
    at = ""
    if place.path:
        function, file, line = place.path[0]
        at = f"{function} ({file.rsplit('/', 1)[-1]}{f':{line}' if line else ''})" if file else function
    if place.kind is Kind.CODE:
        return f"in {at or place.op}"
    if place.op == RETRIED:
        return f"pauses{f' in {at}' if at else ''} before it tries a failed request again"
    words = f"waits for {place.op}" if place.op in _NAMED else _WORDS[place.kind].replace("{op}", place.op)
    if place.kind is Kind.P2P and place.peer is not None:
        words += f" for rank {place.peer}"
    if place.kind is Kind.IDLE and at:
        return f"idle (waits for its next message in {at})"
    if at and place.path[0][0] == place.op and words.endswith(f" {place.op}"):
        return f"{words}{at.removeprefix(place.op)}"  # the line of the call is that of the wait: "barrier (ckpt.py:90)"
    return f"{words} in {at}" if at and place.kind not in IDLE_KINDS else words
