"""Edges of the wait-for graph: who waits for whom, why, and what shows it.

Nodes are processes (``node/pid``) and things that are none: ``actor:ID``, ``task:ID``, ``pg:ID``, ``ext:HOST:PORT``, ``file:PATH``.
"""

from __future__ import annotations

import enum

import msgspec

from ray_rl_debug.model.report import Certainty


class Why(str, enum.Enum):
    """Why one waits for another; the value is what a report prints where the wait has no name of its own."""

    CALL = "ray.get"
    """The result of a Ray call that runs there."""
    QUEUED_CALL = "ray.get (queued)"
    """A Ray call that stands in the queue of its actor."""
    ARGUMENT = "ray.argument"
    """A Ray call whose result is an argument of one that waits."""
    RESOURCES = "resources"
    """A Ray actor, call or placement group that was not started yet."""
    READER = "ray generator"
    """Whoever reads what a generator of Ray yields, and has not read on."""
    ROOM = "held resources"
    """Those of the same bundle or placement group who hold what an actor needs to start."""
    STARTS = "start of a worker"
    """A process that is to become the worker of an actor."""
    COLLECTIVE = "collective"
    """A rank that has not joined a collective, rendezvous or creation of a group."""
    P2P = "recv"
    """The rank at the other end of a send or recv."""
    RECEIVERS = "recv of any"
    """Ranks any one of which may end a wait: the peers of several threads, or all that may be the peer of one that does not tell it."""
    SAME_CALL = "same call"
    """A fellow in the same method that does something else."""
    POLL = "polls"
    """Whoever could change what is looked at again and again."""
    DEAD_MEANWHILE = "awaits"
    """An actor that died after the waiting began."""
    AWAITED_SOCKET = "await socket"
    AWAITED_CHILD = "await child"
    SOCKET = "socket"
    PIPE = "pipe"
    FILE_LOCK = "flock"
    """The holder of a lock on a file, as the kernel tells it."""
    TRIED_LOCK = "file lock"
    """The holder of a lock on a file that is tried again and again; the kernel lists no waiter then."""
    BUILD_LOCK = "lock file"
    CHILD = "waitpid"
    """The end of a child process."""
    DATALOADER = "DataLoader"
    CHILD_QUEUE = "queue of a child"
    SEMAPHORE = "semaphore"
    """The holder of a lock or semaphore between processes."""
    GIVERS = "semaphore (given)"
    """Those who give a semaphore back that others take: it counts room in a queue, items of it, or what is unfinished."""
    ENGINE = "engine"
    """A server waits for its engine core."""
    WORKERS = "workers' answers"
    """An engine core waits for its workers."""
    MESSAGE = "message"
    NEWS = "news of files"
    """Whoever writes the files of which the kernel gives news."""
    WEIGHTS = "weights"
    """A rank sends weights, and nobody takes them."""
    TOLD = "collective (told)"
    """A rank of which a file says that it is elsewhere, without its stack."""
    ASSUMED = "somebody"
    """Somebody whom the stacks do not name: any of those nearer to the work."""
    INSIDE = "another call"
    """Another call of the same actor, or one that somebody may still make: any one of them may end a wait inside of its process."""
    COROUTINE = "await"
    """Inside one process: a coroutine, or the lock that it wants."""


RAY_CALLS = frozenset({Why.CALL, Why.QUEUED_CALL, Why.ARGUMENT, Why.RESOURCES, Why.READER})
"""Waits for what Ray runs or has not begun to run, and for whoever reads what it has made."""


class Edge(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`source` waits for `target`."""

    source: str
    target: str
    why: Why
    evidence: str
    certainty: Certainty = Certainty.PROVEN
    op: str = ""
    """What the wait is called where it has a name of its own: ``all_reduce``, ``ray.wait``."""
    among: str = ""
    """Edges of one source with the same word here are alternatives, whatever their reasons: any one of their targets may end its wait."""

    @property
    def words(self) -> str:
        """``all_reduce``, ``ray.get (queued)``, ``socket``: what a report prints over the arrow."""
        return self.op or self.why.value
