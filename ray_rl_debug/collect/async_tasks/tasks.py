"""The asyncio tasks of one interpreter."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ray_rl_debug.collect.async_tasks.awaited import MAX_CHILDREN, Ends, Kinds
from ray_rl_debug.collect.async_tasks.chains import ChainLink, Chains, Mark, shortened
from ray_rl_debug.collect.async_tasks.descriptors import Descriptors
from ray_rl_debug.collect.async_tasks.libraries import Libraries
from ray_rl_debug.collect.async_tasks.memory import BadRead
from ray_rl_debug.collect.async_tasks.runtime import Runtime, Unsupported
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame

WEAKREF_OBJECT, METHOD_FUNCTION, FUNCTION_NAME = 16, 16, 32
READY = Awaited(kind="ready")
RUNNING = Awaited(kind="running")
_NO_COROUTINE = (AwaitFrame(function="?"),)
_PENDING = 0
_NO_REFERENCES = bytes(4)


class Read(msgspec.Struct):
    """One task with all that its description rests on."""

    task: AsyncTask
    links: list[ChainLink]
    marks: list[Mark]
    held: tuple[int, ...] = ()
    """Objects whose ``async with`` bodies the task is in."""


class Interpreter:
    """Reads tasks of one interpreter of an attached process.

    Raises:
        Unsupported: its ``_asyncio`` is not the one that we know.
    """

    def __init__(self, runtime: Runtime, address: int, pid: int, proc: Path, native: Mapping[int, int]) -> None:
        self._runtime, self._memory, self._objects, self._layout = runtime, runtime.memory, runtime.objects, runtime.layout
        self._address, self._native = address, native
        modules = runtime.modules(address, ["asyncio.tasks", "_asyncio"])
        self.has_asyncio = "asyncio.tasks" in modules
        self._module = modules.get("asyncio.tasks", 0)
        if not self.has_asyncio:
            return
        self._kinds = self._find_kinds(modules.get("_asyncio", 0))
        self._threads = runtime.threads(address)
        self._lists = runtime.task_lists() if self._kinds.task else None
        self._loops: dict[int, tuple[int | None, float | None, int | None]] = {}
        self.chains = Chains(runtime)
        libraries = Libraries(self.chains, lambda at: self._kinds.is_task(self._objects.type_of(at)), MAX_CHILDREN, pid, proc)
        self._ends = Ends(self.chains, self._kinds, Descriptors(self.chains, pid, proc), libraries)
        layout = self._layout
        self._fields = struct.Struct(
            f"<Q{layout.future_state - 16}xi{layout.task_waiter - layout.future_state - 4}xQQQ"  # type, state, waiter, coroutine, name
        )

    def _find_kinds(self, module: int) -> Kinds:
        if not module:
            return Kinds()
        found = self._objects.lookup(module, ["Task", "Future"])
        task, future = (self._objects.type_at(found.get(name, 0)) for name in ("Task", "Future"))
        layout = self._layout
        if task is None or future is None or task.basicsize != layout.task_size or future.basicsize != layout.future_size:
            raise Unsupported("asyncio's tasks have another size than in the CPython versions we know")
        return Kinds(task.address, future.address)

    def forget(self) -> None:
        """See the process as it is now at the next read."""
        self._memory.forget()
        self._objects.forget()
        self.chains.forget()
        self._ends.forget()

    def registered(self, limit: int) -> tuple[list[int], bool]:
        """Addresses of tasks, finished ones among them, and whether that is all."""
        found: dict[int, None] = {}
        complete = True
        for registry in self._objects.lookup(self._module, self._layout.registries).values():
            name = self._objects.type_name(registry)
            if name == "WeakSet":
                references, whole = self._objects.set_items(self._objects.attributes(registry).get("data", 0))
                for reference in references:
                    if self._objects.type_name(reference) in ("ReferenceType", "weakref"):
                        found[self._memory.word(reference + WEAKREF_OBJECT)] = None
            elif name == "set":
                tasks, whole = self._objects.set_items(registry)
                found.update(dict.fromkeys(tasks))
            else:
                continue
            complete = complete and whole
        for head in self._heads():
            complete = self._add_chained(head, found, limit) and complete
        addresses = [a for a in found if a and not a & 7]
        return addresses[:limit], complete and len(addresses) <= limit

    def _heads(self) -> list[int]:
        """3.14: where the lists of tasks of each thread, and of threads that ended, begin."""
        lists = self._lists
        if lists is None:
            return []
        return [self._address + lists.interp_head, *(state + lists.thread_head for state in self._runtime.thread_states(self._address))]

    def _add_chained(self, head: int, found: dict[int, None], limit: int) -> bool:
        """Add the tasks of one list; False when it is longer, or changes while it is read."""
        assert self._lists is not None
        at = self._memory.word(head)
        for _ in range(limit + 1):
            if at == head or not at:
                return True
            task = at - self._lists.task_node
            if not self._kinds.is_task(self._objects.type_of(task)):
                return False
            found[task] = None
            at = self._memory.word(at)
        return False

    def current(self) -> frozenset[int]:
        """Tasks that a loop executes at this moment."""
        try:
            if self._lists is not None:
                place = self._lists.thread_task
                return frozenset(self._memory.word(state + place) for state in self._runtime.thread_states(self._address))
            table = self._objects.lookup(self._module, ["_current_tasks"]).get("_current_tasks", 0)
            return frozenset(value for _, value in self._objects.dict_items(table))
        except BadRead:
            return frozenset()

    def read(self, address: int, current: frozenset[int]) -> Read | None:
        """One task; None when it is finished. Raises BadRead when it is none (any more)."""
        kind = self._objects.type_of(address)
        if kind is None or kind.name == "NoneType":
            return None
        marks: list[Mark] = []
        if self._kinds.task in kind.bases:
            raw = self._memory.read(address + 8, self._fields.size)
            _, state, waiter, coroutine, name_at = self._fields.unpack(raw)
            marks.append((address + 8, raw))
            if state != _PENDING:
                return None
            loop = self._memory.word(address + self._layout.future_loop)
            if not (coroutine and name_at and loop):
                raise BadRead("a task that is taken down")
        else:
            own = self._objects.attributes(address)
            if "_coro" not in own or ("_state" in own and self._objects.string(own["_state"]) != "PENDING"):
                return None
            waiter, coroutine, name_at, loop = own.get("_fut_waiter", 0), own["_coro"], own.get("_name", 0), own.get("_loop", 0)
        if waiter and self._objects.type_name(waiter) == "NoneType":
            waiter = 0
        links, end = self.chains.follow(coroutine, marks)
        if not links and not end:
            return None  # its coroutine has returned; the task is about to end
        if not links and end == coroutine and not self._may_run(coroutine):
            raise BadRead("no coroutine")  # freed meanwhile, and its memory somebody else's
        is_running = address in current or bool(links and links[0].is_running)
        if is_running:
            awaited = RUNNING
        elif (not waiter and not end) or (waiter and self._ends.future_state(waiter) in (1, 2)):
            awaited = READY
        else:
            awaited = self._ends.describe(links, end or waiter)
        thread, timer, timers = self._loop(loop)
        held, entered = self._held(links)
        task = AsyncTask(
            address=address,
            name=self._name(name_at),
            chain=shortened(tuple(link.frame for link in links)) or _NO_COROUTINE,
            awaited=awaited,
            loop=loop or None,
            tid=thread,
            timer_s=timer,
            timers=timers,
            gives_up_s=self._ends.given_up_s((*held, *entered), links),
        )
        return Read(task=task, links=links, marks=marks, held=held)

    def _may_run(self, coroutine: int) -> bool:
        """Is an object that is none of Python's own coroutines one of a class of the program?"""
        kind = self._objects.type_of(coroutine)
        return kind is not None and self._objects.defines(kind, "send")

    def is_unmoved(self, found: Read) -> bool:
        """Does all that a task's description rests on stand there still? A freed task keeps its type, and has no references."""
        is_still = self._memory.is_still
        try:
            return not is_still(found.task.address, _NO_REFERENCES) and all(is_still(address, raw) for address, raw in found.marks)
        except BadRead:
            return False

    def _name(self, address: int) -> str:
        try:
            return self._objects.string(address)
        except BadRead:
            pass
        if not address:
            return "?"  # a task type of the program's own
        return f"Task-{self._objects.number(address)}"  # a number until somebody asks for the name

    def _loop(self, loop: int) -> tuple[int | None, float | None, int | None]:
        """The native thread that runs a loop, the seconds until its next timer is due, and how many timers it has."""
        if loop not in self._loops:
            try:
                ident = self._loop_ident(loop)
            except BadRead:
                ident = None
            inner = self._threads.get(ident) if ident is not None else None
            self._loops[loop] = (self._native.get(inner) if inner is not None else None, *self._ends.timers(loop))
        return self._loops[loop]

    def _loop_ident(self, loop: int) -> int | None:
        kind = self._objects.type_of(loop)
        if kind is None:
            return None
        at = self._objects.attribute(loop, "_thread_id")
        value = self._objects.number(at) if at else None
        if isinstance(value, int):
            return value
        # uvloop keeps the thread in a C field of its Loop
        words = self._memory.words(loop, kind.basicsize // 8)
        return next((word for word in words if word in self._threads), None)

    def _held(self, links: list[ChainLink]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Objects whose ``async with`` body the chain is in, and those of ``with``: their exits wait on the value stack until the body ends."""
        held: list[int] = []
        entered: list[int] = []
        for i, link in enumerate(links):
            if link.stack_size < 2:
                continue
            try:
                owners, plain = self._owners(self.chains.stack(link))
                inner = links[i + 1] if owners and i + 1 < len(links) else None
                if inner is not None and self._is_taking(inner, owners[-1]):
                    owners.pop()
            except BadRead:
                continue
            held += owners
            entered += plain
        return tuple(held), tuple(entered)

    def _owners(self, stack: tuple[int, ...]) -> tuple[list[int], list[int]]:
        """Objects whose ``__aexit__`` or ``__exit__`` stands on a value stack: as a bound method, in 3.14 also as the function before its object."""
        found: dict[str, list[int]] = {"__aexit__": [], "__exit__": []}
        for i, word in enumerate(stack):
            kind = self._objects.type_name(word)
            if kind == "method":
                function, owner = self._memory.words(word + METHOD_FUNCTION, 2)
                if self._objects.type_name(function) != "function":
                    continue
            elif kind == "function" and i + 1 < len(stack) and self._lists is not None:
                function, owner = word, stack[i + 1]
            else:
                continue
            found.get(self._objects.string(self._memory.word(function + FUNCTION_NAME)), []).append(owner)
        return found["__aexit__"], found["__exit__"]

    def _is_taking(self, inner: ChainLink, owner: int) -> bool:
        """Does a frame still wait to enter, or has it given back what it entered for as long as it waits?"""
        name = inner.frame.function.rpartition(".")[2]
        return (name == "__aenter__" or inner.frame.function == "Condition.wait") and self.chains.variable(inner, "self") == owner

    def lock_of(self, owner: int) -> int:
        """The lock that entering an object takes: a condition's own, else the object itself."""
        try:
            return self._objects.attribute(owner, "_lock") or owner if self._objects.type_name(owner) == "Condition" else owner
        except BadRead:
            return owner
