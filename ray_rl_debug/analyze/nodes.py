"""What the nodes of the wait-for graph are called, and what each kind of them is: the one place that makes and reads these names.

A collected process bears its own key (``node/pid``). Everything else says its kind first: ``actor:ID``, ``rank:WORLD/3``.
"""

from __future__ import annotations

import enum


class NodeKind(str, enum.Enum):
    """What a node of the graph is."""

    PROCESS = ""
    """A process that was collected."""
    PID = "pid"
    """A process that was not collected; only its pid is known."""
    ACTOR = "actor"
    """An actor of Ray without a collected process: dead, pending, or on a node that was not seen."""
    TASK = "task"
    """A call of Ray that nobody runs."""
    PLACEMENT_GROUP = "pg"
    NAMED = "named"
    """A part or machine of which somebody says that it has not come; named by what that one calls it."""
    RANK = "rank"
    """A rank of a world that was not seen."""
    ABSENT = "absent"
    """The ranks of a world whose stacks nobody gave; named by the world's key."""
    MACHINE = "node"
    """A machine that did not answer."""
    ADDRESS = "ext"
    """A service outside of the machines that were looked at."""
    UNSEEN = "unseen"
    """Whoever holds the other end of something, and was not seen."""
    GONE = "gone"
    """A part of an engine that is dead and was reaped; named by the engine's key."""
    COMMUNICATOR = "comm"
    """All ranks of an NCCL communicator together."""
    COROUTINE = "t"
    LOCK = "l"
    LANE = "lane"
    """The calls of one method that an actor runs beside others; named by the process and the method."""
    THREAD = "thread"
    """A thread that may serve others while its process waits elsewhere; named by the process and the thread's number."""


_KINDS = {kind.value: kind for kind in NodeKind if kind.value}


def node_of(kind: NodeKind, name: object) -> str:
    """The name of a node: ``node_of(NodeKind.ACTOR, "01ff")`` is ``actor:01ff``."""
    prefix = kind.value
    return f"{prefix}:{name}" if prefix else str(name)


def kind_of(node: str) -> NodeKind:
    """The kind of a node by its name."""
    kind, found, _ = node.partition(":")
    return _KINDS.get(kind, NodeKind.PROCESS) if found else NodeKind.PROCESS


def name_of(node: str) -> str:
    """A node's name without its kind: ``01ff`` of ``actor:01ff``, ``n1/812`` of the process ``n1/812``."""
    return node.partition(":")[2] if kind_of(node) is not NodeKind.PROCESS else node


def node_of_rank(world: str, rank: int) -> str:
    """The node of a rank that was not seen."""
    return node_of(NodeKind.RANK, f"{world}/{rank}")


def node_of_pid(machine: str, pid: int) -> str:
    """The node of a process that was not collected."""
    return node_of(NodeKind.PID, f"{machine}/{pid}")


def split(node: str) -> tuple[str, int]:
    """World and number of a rank, machine and pid of a process: ``("n1", 812)`` of ``pid:n1/812``."""
    head, _, number = name_of(node).rpartition("/")
    return head, int(number)
