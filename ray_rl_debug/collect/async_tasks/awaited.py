"""What an await chain ends in: which primitive, future, task, socket or object, and its state."""

from __future__ import annotations

import time
from asyncio import FIRST_COMPLETED
from collections.abc import Callable

from ray_rl_debug.collect.async_tasks.chains import ChainLink, Chains
from ray_rl_debug.collect.async_tasks.descriptors import Descriptors
from ray_rl_debug.collect.async_tasks.libraries import Libraries
from ray_rl_debug.collect.async_tasks.memory import BadRead
from ray_rl_debug.collect.async_tasks.objects import IS_TUPLE, PyType
from ray_rl_debug.collect.object_refs import ID_BYTES, id_offset, is_object_id
from ray_rl_debug.model.snapshot import Awaited

MAX_CHILDREN = 20_000
MAX_CELLS = 16
OBJECT_REF_SIZE = 96
"""Bytes of Ray's ObjectRef; another size is another layout, and no id is read."""
MAX_NUMBER = 1 << 53
"""What JSON keeps of whole numbers."""
FUNCTION_CLOSURE = 72
CELL_VALUE = 16
MAX_TIMERS, MAX_TIMER_S = 64, 1e7
SET_S = 60.0
"""A later limit is most likely the library's own, of five minutes, and none that the program has set."""
_LIMIT = "Timeout"
"""What ``asyncio.timeout`` gives, and the package async-timeout before it."""
INNER_FRAMES = 6
"""A chain's innermost frames that are asked what they read from."""

_HANDED_ON = frozenset({"event", "condition"})


class Kinds:
    """The types of ``_asyncio`` in one interpreter; zeros where it is not loaded."""

    def __init__(self, task: int = 0, future: int = 0) -> None:
        self.task, self.future = task, future

    def is_task(self, kind: PyType | None) -> bool:
        return kind is not None and (self.task in kind.bases or kind.name == "_PyTask") and self.task != 0

    def is_future(self, kind: PyType | None) -> bool:
        return kind is not None and self.future in kind.bases and self.future != 0


class Ends:
    """Describes what tasks finally await."""

    def __init__(
        self, chains: Chains, kinds: Kinds, descriptors: Descriptors, libraries: Libraries, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._chains, self._memory, self._objects, self._layout = chains, chains.memory, chains.objects, chains.layout
        self._kinds, self._descriptors, self._libraries = kinds, descriptors, libraries
        self._seen: dict[tuple[int, str], Awaited] = {}
        self._by_module: dict[str, Callable[[str, ChainLink], Awaited | None]] = {
            "asyncio/locks.py": self._lock,
            "asyncio/queues.py": self._queue,
            "asyncio/tasks.py": self._asyncio_task,
            "asyncio/taskgroups.py": self._group,
        }

    def describe(self, links: list[ChainLink], end: int) -> Awaited:
        """What is awaited by a chain that ends at the object `end`."""
        for describe in (self._of_library, self._primitive, self._future):
            try:
                found = describe(links, end)
            except BadRead:
                continue
            if found is not None and found.kind in _HANDED_ON:
                return self._socket(links, found)
            if found is not None:
                return found
        name = self._objects.type_name(end)
        if name in ("", "NoneType"):
            return Awaited(kind="unknown")
        return Awaited(kind="future" if "Future" in name else "unknown", detail=name, address=end)

    def forget(self) -> None:
        """See what is awaited as it is now at the next read."""
        self._seen.clear()

    def _of_library(self, links: list[ChainLink], _: int) -> Awaited | None:
        return self._libraries.describe(links)

    def _socket(self, links: list[ChainLink], found: Awaited) -> Awaited:
        """The socket behind an event that a library's reader waits for, as anyio's does."""
        socket = self._descriptors.find(links[-INNER_FRAMES:])
        return found if socket is None else Awaited(kind="socket", detail=f"socket {socket[1]}", address=found.address, fd=socket[0])

    def _future(self, links: list[ChainLink], end: int) -> Awaited | None:
        kind = self._objects.type_of(end)
        if kind is None:
            return None
        socket = self._descriptors.find(links[-INNER_FRAMES:])
        if socket is not None:
            return Awaited(kind="socket", detail=f"socket {socket[1]}", address=end, fd=socket[0])
        if self._kinds.is_task(kind):
            return Awaited(kind="task", detail=kind.name, address=end, tasks=(end,))
        if kind.name == "_GatheringFuture":
            return self._gathering(end)
        return self._chained(end) if self._kinds.is_future(kind) else None

    def future_state(self, address: int) -> int | None:
        """0 pending, 1 cancelled, 2 finished; None for what is no future of ``_asyncio``."""
        if not self._kinds.is_future(self._objects.type_of(address)):
            return None
        return int.from_bytes(self._memory.read(address + self._layout.future_state, 4), "little")

    # asyncio's own coroutines, by their frames

    def _primitive(self, links: list[ChainLink], _: int) -> Awaited | None:
        for link in reversed(links[-3:]):
            describe = self._by_module.get(link.frame.file or "")
            if describe is None:
                return None
            name = link.frame.function.rpartition(".")[2]
            outer = links[-2] if link is links[-1] and len(links) > 1 else None
            if outer is not None and name == "wait" and outer.frame.file == "asyncio/queues.py":
                continue  # Queue.join waits for an Event of its own
            if name == "_wait" and link.frame.file == "asyncio/tasks.py":
                continue  # wait() has the same variables, and none of them in a cell
            return describe(name, link)
        return None

    def _lock(self, name: str, link: ChainLink) -> Awaited | None:
        """Often thousands of tasks wait for one lock."""
        key = self._chains.variable(link, "self"), name
        found = self._seen.get(key)
        if found is None:
            found = self._describe_lock(name, link)
            if found is not None:
                self._seen[key] = found
        return found

    def _describe_lock(self, name: str, link: ChainLink) -> Awaited | None:
        address, kind, number = self._owner(link)
        if kind is None:
            return None
        if name == "acquire" and (value := number("_value")) is not None:
            return Awaited(kind="semaphore", detail=f"{kind.name} value={value}", address=address, value=value)
        if name == "acquire":
            locked = number("_locked")
            state = "" if locked is None else " locked" if locked else " unlocked"
            return Awaited(kind="lock", detail=f"{kind.name}{state}", address=address)
        if name == "wait" and number("_value") is not None:
            return Awaited(kind="event", detail=f"{kind.name} {'set' if number('_value') else 'unset'}", address=address)
        return Awaited(kind="condition", detail=kind.name, address=address) if name in ("wait", "wait_for", "_wait", "_block") else None

    def _queue(self, name: str, link: ChainLink) -> Awaited | None:
        address, kind, number = self._owner(link)
        if kind is None or name not in ("get", "put", "join"):
            return None
        held = self._objects.attribute(address, "_queue")
        items, limit = self._objects.length(held) if held else None, number("_maxsize")
        state = {
            "get": "empty" if items == 0 else f"{items} items",
            "put": f"full {items} of {limit}" if items == limit else f"{items} of {limit}",
            "join": f"{number('_unfinished_tasks')} unfinished",
        }[name]
        return Awaited(kind="queue", detail=f"{kind.name}.{name} {state}", address=address, value=items)

    def _asyncio_task(self, name: str, link: ChainLink) -> Awaited | None:
        variable = self._chains.variable
        if name == "sleep":
            delay = _seconds(self._objects.number(variable(link, "delay")))
            return Awaited(kind="sleep", delay_s=delay, due_s=self._due(variable(link, "h"), delay))
        if name == "wait_for":
            inner, limit = variable(link, "fut"), _seconds(self._objects.number(variable(link, "timeout")))
            if self._kinds.is_task(self._objects.type_of(inner)):
                return Awaited(kind="task", detail="wait_for" + (f" {limit:g} s" if limit is not None else ""), address=inner, tasks=(inner,))
            return self._future([], inner) if inner else None  # a future, as shield() gives one
        if name == "wait":
            items = self._objects.set_items(variable(link, "fs"))[0][:MAX_CHILDREN]
            is_first = self._text(variable(link, "return_when")) == FIRST_COMPLETED
            detail = f"asyncio.wait {'for the first of' if is_first else 'of'} {len(items)}"
            return Awaited(kind="gather", detail=detail, tasks=self._only_tasks(items), first=is_first)
        return None

    def _text(self, address: int) -> str | None:
        try:
            return self._objects.string(address)
        except BadRead:
            return None

    def _due(self, timer: int, delay: float | None) -> float | None:
        """Seconds until a timer of asyncio is due; uvloop's do not tell."""
        try:
            when = self._objects.number(self._objects.attribute(timer, "_when"))
        except BadRead:
            return None
        left = when - self._clock() if when is not None else None
        # later than it can be: another clock, as in a time namespace
        return round(left, 3) if left is not None and delay is not None and abs(left) < 1e9 and left < delay + 1 else None

    def timers(self, loop: int) -> tuple[float | None, int | None]:
        """Seconds until the next timer of an event loop is due, and how many there are; None where there is none, or the loop does not tell."""
        try:
            timers = self._objects.sequence(self._objects.attribute(loop, "_scheduled"), MAX_TIMERS)
            due = [when for timer in timers if (when := self._when(timer)) is not None]
        except BadRead:
            return None, None
        left = min(due) - self._clock() if due else None
        return (round(left, 3) if left is not None and abs(left) < MAX_TIMER_S else None), len(due)

    def given_up_s(self, held: tuple[int, ...], links: list[ChainLink]) -> float | None:
        """Seconds until the first limit of time ends what a task awaits: of the objects whose ``with`` bodies it is in, or of a request."""
        found = [when for owner in held if (when := self._limit_of(owner)) is not None]
        try:
            timers = [when for timer in self._libraries.timers(links) if (when := self._when(timer)) is not None]
            found += [when for when in timers if when - self._clock() < SET_S]
        except BadRead:
            pass  # a task that goes on meanwhile
        left = [when - self._clock() for when in found]
        return min((round(s, 3) for s in left if abs(s) < MAX_TIMER_S), default=None)

    def _limit_of(self, owner: int) -> float | None:
        try:
            if self._objects.type_name(owner) != _LIMIT:
                return self._libraries.deadline(owner)
            return self._objects.number(self._objects.attribute(owner, "_when"))
        except BadRead:
            return None

    def _when(self, timer: int) -> float | None:
        """When a timer is due, by the clock of its loop; None when it was cancelled."""
        is_cancelled = self._objects.number(self._objects.attribute(timer, "_cancelled"))
        return None if is_cancelled else self._objects.number(self._objects.attribute(timer, "_when"))

    def _group(self, name: str, link: ChainLink) -> Awaited | None:
        address, kind, _ = self._owner(link)
        tasks = self._objects.attribute(address, "_tasks") if kind else 0
        if name not in ("__aexit__", "_aexit") or not tasks:
            return None
        items = self._objects.set_items(tasks)[0][:MAX_CHILDREN]
        return Awaited(kind="gather", detail=f"TaskGroup of {len(items)}", address=address, tasks=self._only_tasks(items))

    def _owner(self, link: ChainLink) -> tuple[int, PyType | None, Callable[[str], int | None]]:
        """The object whose method a frame runs, its type, and its attributes that are whole numbers."""
        address = self._chains.variable(link, "self")
        kind = self._objects.type_of(address)
        own = self._objects.attributes(address) if kind else {}

        def number(name: str) -> int | None:
            value = self._objects.number(own[name]) if name in own else None
            return value if isinstance(value, int) and abs(value) < MAX_NUMBER else None

        return address, kind, number

    # futures

    def _gathering(self, end: int) -> Awaited:
        try:
            children = self._objects.sequence(self._objects.attributes(end)["_children"], MAX_CHILDREN)
        except (BadRead, KeyError):
            return Awaited(kind="gather", address=end)
        return Awaited(kind="gather", detail=f"gather of {len(children)}", address=end, tasks=self._only_tasks(children))

    def _only_tasks(self, addresses: list[int] | tuple[int, ...]) -> tuple[int, ...]:
        return tuple(a for a in addresses if self._kinds.is_task(self._objects.type_of(a)))

    def _chained(self, future: int) -> Awaited | None:
        """The future of a thread, an executor or Ray, or the task, whose end is passed on to this one: both stand in its first callback.

        A closure has its variables by name: in shield's of 3.14 ``inner`` comes behind ``cur_task``, which is the one that waits.
        """
        for inner in reversed(self._closure(self._memory.word(future + self._layout.future_callback0))):
            kind = self._objects.type_of(inner)
            if kind is None or inner == future:
                continue
            if self._kinds.is_task(kind):
                return Awaited(kind="task", detail=kind.name, address=inner, tasks=(inner,))
            if kind.name == "Future" and not self._kinds.is_future(kind):
                return self._thread_future(inner)
        return None

    def _thread_future(self, address: int) -> Awaited | None:
        own = self._objects.attributes(address)
        if "_done_callbacks" not in own:
            return None
        reference = own.get("object_ref", 0)
        kind = self._objects.type_of(reference)
        if kind is not None and kind.name.endswith("ObjectRef"):
            return Awaited(kind="objectref", detail=kind.name, address=reference, object_id=self._object_id(reference, kind))
        state = self._objects.string(own["_state"]).lower() if "_state" in own else ""
        for callback in self._objects.sequence(own["_done_callbacks"], MAX_CELLS):
            for inner in self._closure(callback):
                if self._kinds.is_task(self._objects.type_of(inner)):
                    return Awaited(kind="task", detail="task of another loop", address=inner, tasks=(inner,))
        return Awaited(kind="executor", detail=f"thread future {state}".strip(), address=address)

    def _closure(self, function: int) -> tuple[int, ...]:
        """Objects that a function's closure holds."""
        if self._objects.type_name(function) != "function":
            return ()
        cells = self._memory.word(function + FUNCTION_CLOSURE)
        kind = self._objects.type_of(cells)
        if kind is None or not kind.flags & IS_TUPLE:
            return ()
        return tuple(self._memory.word(cell + CELL_VALUE) for cell in self._objects.sequence(cells, MAX_CELLS))

    def _object_id(self, reference: int, kind: PyType) -> str | None:
        if kind.basicsize != OBJECT_REF_SIZE:
            return None
        raw = self._memory.read(reference + id_offset(), ID_BYTES)
        return raw.hex() if is_object_id(raw) else None


def _seconds(value: int | float | None) -> float | None:
    """JSON knows no infinity."""
    return float(value) if value is not None and abs(value) < 1e15 else None
