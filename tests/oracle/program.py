"""Programs for the simulator: what tasks there are, what they share, and the operations each of them does one after another.

A task is a thread, or a coroutine if it has a loop, or a lane of a server (an actor, or a pool) if it begins with `Serve`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Op:
    """One operation. Those without a remark never wait."""


@dataclass(frozen=True)
class Work(Op):
    """One step of its own."""


@dataclass(frozen=True)
class Beat(Op):
    """Works without end and does nothing that anybody waits for."""


@dataclass(frozen=True)
class Sleep(Op):
    """Goes on by the clock alone."""


@dataclass(frozen=True)
class Die(Op):
    """The whole process dies, whatever it holds."""


@dataclass(frozen=True)
class Send(Op):
    """Waits until the channel has room; without a buffer, until the receiver is there."""

    channel: str
    timeout: bool = False


@dataclass(frozen=True)
class Recv(Op):
    """Waits for a message on any of the channels."""

    channels: tuple[str, ...]
    timeout: bool = False


@dataclass(frozen=True)
class Join(Op):
    """Waits until all members of the group are in the collective of this name; those in another one never come."""

    group: str
    name: str


@dataclass(frozen=True)
class Take(Op):
    """Waits for a free unit of a resource; a lock has one unit, and its holder may not take it twice."""

    resource: str
    timeout: bool = False


@dataclass(frozen=True)
class Give(Op):
    """Gives a unit back, if it holds one."""

    resource: str


@dataclass(frozen=True)
class Put(Op):
    """Waits for room in the queue. On a queue without bound: the release of a semaphore."""

    queue: str
    timeout: bool = False


@dataclass(frozen=True)
class Get(Op):
    """Waits for an item."""

    queue: str
    timeout: bool = False


@dataclass(frozen=True)
class Set(Op):
    """Sets an event for ever."""

    event: str


@dataclass(frozen=True)
class Wait(Op):
    """Waits until any of the events is set."""

    events: tuple[str, ...]
    timeout: bool = False


@dataclass(frozen=True)
class Call(Op):
    """Queues a call at a server; one of its lanes will do `code`."""

    server: str
    ref: str
    code: tuple[Op, ...] = ()


@dataclass(frozen=True)
class Collect(Op):
    """Waits for the results of all calls, or of any one."""

    refs: tuple[str, ...]
    any: bool = False
    timeout: bool = False


@dataclass(frozen=True)
class Serve(Op):
    """Of a lane: waits for a call and does it, again and again."""

    server: str


@dataclass(frozen=True)
class Reply(Op):
    """Of a lane: the end of a call."""

    ref: str


@dataclass(frozen=True)
class Spawn(Op):
    """Lets tasks begin that were not born yet."""

    tasks: tuple[str, ...]


@dataclass(frozen=True)
class Reap(Op):
    """Waits until all these tasks have ended: join of a thread, waitpid of a process."""

    tasks: tuple[str, ...]
    timeout: bool = False


@dataclass(frozen=True)
class Hold(Op):
    """Of a coroutine: begins a stretch that blocks its loop; waits until the loop is free."""


@dataclass(frozen=True)
class Free(Op):
    """Of a coroutine: ends that stretch."""


@dataclass(frozen=True)
class Task:
    process: str
    code: tuple[Op, ...]
    loop: str | None = None
    born: bool = True


@dataclass(frozen=True)
class Channel:
    sender: str
    receiver: str
    capacity: int


@dataclass(frozen=True)
class Resource:
    units: int = 1
    freed_at_death: bool = False
    """As file locks are."""


@dataclass(frozen=True)
class Queue:
    capacity: int | None
    """None: without bound."""
    stock: int = 0


@dataclass(frozen=True)
class Program:
    tasks: dict[str, Task]
    channels: dict[str, Channel] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    resources: dict[str, Resource] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    servers: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def methods(self) -> dict[str, set[Op]]:
        """Of each server: all that its lanes may ever be asked to do."""
        calls = [op for op in every_op(op for task in self.tasks.values() for op in task.code) if isinstance(op, Call)]
        return {server: {inner for call in calls if call.server == server for inner in call.code} for server in self.servers}

    def __str__(self) -> str:
        """What a person needs to see of it: tasks that do something, and what they use."""
        used = str([op for task in self.tasks.values() for op in task.code if not isinstance(op, Serve)])
        lines = []
        for name, task in self.tasks.items():
            if [op for op in task.code if not isinstance(op, Serve) or f"'{op.server}'" in used]:
                place = f" on {task.loop}" if task.loop else ""
                born = "" if task.born else ", not born"
                lines.append(f"{task.process}/{name}{place}{born}: {'; '.join(map(str, task.code))}")
        for kind in (self.channels, self.groups, self.resources, self.queues, self.servers):
            lines += [f"{name} = {thing}" for name, thing in kind.items() if f"'{name}'" in used]
        idle = [name for name, task in self.tasks.items() if not task.code]
        return "\n".join([*lines, f"nothing to do: {', '.join(idle)}"])


def every_op(code: Iterable[Op]) -> Iterator[Op]:
    """These operations and those of the calls among them, to any depth."""
    for op in code:
        yield op
        if isinstance(op, Call):
            yield from every_op(op.code)
