"""What coroutines of asyncio's subprocesses, of anyio, of gRPC and of the pools of HTTP clients wait for, by their frames."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import msgspec

from ray_rl_debug.collect.async_tasks.chains import ChainLink, Chains
from ray_rl_debug.collect.async_tasks.memory import BadRead
from ray_rl_debug.model.snapshot import Awaited

INNER = 7
"""A chain's innermost frames that are asked."""
_ANYIO = "anyio/_backends/_asyncio.py"
_BY_FRAME = {
    ("asyncio/subprocess.py", "wait"): "_process",
    ("asyncio/subprocess.py", "_read_stream"): "_process",
    ("asyncio/subprocess.py", "_feed_stdin"): "_process",
    ("asyncio/streams.py", "_wait_for_data"): "_output",
    ("asyncio/streams.py", "_drain_helper"): "_input",
    ("asyncio/locks.py", "_wait"): "_barrier",
    ("asyncio/locks.py", "_block"): "_barrier",
    ("asyncio/tasks.py", "_wait_for_one"): "_first_of",
    (_ANYIO, "acquire"): "_lock",
    (_ANYIO, "acquire_on_behalf_of"): "_limiter",
    (_ANYIO, "__aexit__"): "_group",
    (_ANYIO, "run_sync_in_worker_thread"): "_thread",
    ("anyio/streams/memory.py", "receive"): "_stream",
    ("anyio/streams/memory.py", "send"): "_stream",
    ("aiohttp/connector.py", "_wait_for_available_connection"): "_aiohttp_pool",
    ("httpcore/_async/connection_pool.py", "wait_for_connection"): "_httpcore_pool",
    ("", "execute_batch"): "_grpc",  # compiled from Cython, which tells no file
}
"""File and function of a coroutine that waits: the method here that describes it."""
_TIMERS = {("aiohttp/client.py", "_request"): "handle"}
"""File and function of a coroutine that ends a request after a time: the local variable that holds the loop's timer for that."""

_SCOPE, _OF_GENERATOR = "CancelScope", "_GeneratorContextManager"
"""What anyio ends at its deadline, and what ``fail_after`` gives: it has its scope in a variable of its generator."""
_SCOPES = ("scope", "cancel_scope")


class Libraries:
    """Describes what tasks finally await in coroutines of libraries that it knows."""

    def __init__(self, chains: Chains, is_task: Callable[[int], bool], limit: int, pid: int, proc: Path) -> None:
        self._chains, self._objects, self._is_task, self._limit = chains, chains.objects, is_task, limit
        self._pid, self._proc = pid, proc
        self._children: dict[int, int] | None = None

    def describe(self, links: list[ChainLink]) -> Awaited | None:
        """What the innermost known one of these coroutines waits for; None where none is known."""
        for i in range(len(links) - 1, max(len(links) - INNER, 0) - 1, -1):
            frame = links[i].frame
            method = _BY_FRAME.get((frame.file or "", frame.function.rpartition(".")[2]))
            if method is None:
                continue
            try:
                found: Awaited | None = getattr(self, method)(links, i, self._chains.variable(links[i], "self"))
            except BadRead:
                continue
            if found is not None:
                return found
        return None

    def timers(self, links: list[ChainLink]) -> list[int]:
        """The timers that will end what these coroutines wait for."""
        named = [(link, _TIMERS.get((link.frame.file or "", link.frame.function.rpartition(".")[2]))) for link in links]
        found = [self._chains.variable(link, name) for link, name in named if name is not None]
        return [timer for timer in found if self._objects.type_name(timer) == "TimerHandle"]

    def deadline(self, owner: int) -> float | None:
        """When a scope of anyio ends what runs in it, by the clock of the loop; None of anything else, and where it has no limit."""
        name = self._objects.type_name(owner)
        if name == _OF_GENERATOR:
            link = self._chains.suspended(self._objects.attribute(owner, "gen"))
            if link is None or not (link.frame.file or "").startswith("anyio/"):
                return None
            owner = next((at for local in _SCOPES if (at := self._chains.variable(link, local))), 0)
            name = self._objects.type_name(owner)
        found = self._objects.number(self._objects.attribute(owner, "_deadline")) if name == _SCOPE else None
        return found if found is not None and math.isfinite(found) else None

    # asyncio

    def _process(self, _: list[ChainLink], __: int, owner: int) -> Awaited | None:
        return self._child(owner, self._whole(owner, "pid"))

    def _output(self, _: list[ChainLink], __: int, reader: int) -> Awaited | None:
        """A line or the rest of what a child process writes: its pipe's protocol knows the process."""
        transport = self._objects.attribute(reader, "_transport")
        protocol = self._objects.attribute(transport, "_protocol") if transport else 0
        process = self._objects.attribute(protocol, "proc") if protocol else 0
        return self._child(process, self._whole(process, "_pid")) if process else None

    def _input(self, _: list[ChainLink], __: int, protocol: int) -> Awaited | None:
        """Room in the pipe that a child process reads."""
        if self._objects.type_name(protocol) != "SubprocessStreamProtocol":
            return None
        transport = self._objects.attribute(protocol, "_transport")
        found = self._child(transport, self._whole(transport, "_pid"))
        return msgspec.structs.replace(found, detail="process input") if found is not None else None

    def _child(self, owner: int, inner: int | None) -> Awaited | None:
        if inner is None or inner <= 0:
            return None
        if self._children is None:
            self._children = children_of(self._pid, self._proc)
        return Awaited(kind="subprocess", detail="process", address=owner, pid=self._children.get(inner))

    def _barrier(self, _: list[ChainLink], __: int, owner: int) -> Awaited | None:
        if self._objects.type_name(owner) != "Barrier":
            return None
        return Awaited(kind="condition", detail=f"Barrier {self._whole(owner, '_count')} of {self._whole(owner, '_parties')}", address=owner)

    def _first_of(self, _: list[ChainLink], __: int, owner: int) -> Awaited | None:
        todo = self._objects.attribute(owner, "_todo")
        return self._tasks("as_completed", owner, todo) if todo else None

    # anyio

    def _lock(self, _: list[ChainLink], __: int, owner: int) -> Awaited | None:
        kind = self._objects.type_name(owner)
        if kind == "Semaphore":
            value = self._whole(owner, "_value")
            return Awaited(kind="semaphore", detail=f"{kind} value={value}", address=owner, value=value)
        holder = self._objects.attribute(owner, "_owner_task") if kind == "Lock" else 0
        if not holder:
            return None
        is_held = self._is_task(holder)
        return Awaited(kind="lock", detail=f"Lock {'' if is_held else 'un'}locked", address=owner, holders=(holder,) if is_held else ())

    def _limiter(self, _: list[ChainLink], __: int, owner: int) -> Awaited | None:
        borrowers = self._objects.set_items(self._objects.attribute(owner, "_borrowers"))[0]
        total = self._objects.number(self._objects.attribute(owner, "_total_tokens"))
        free = max(0, int(total) - len(borrowers)) if total is not None and total < 1 << 31 else None
        holders = tuple(b for b in borrowers[: self._limit] if self._is_task(b))
        return Awaited(kind="semaphore", detail=f"CapacityLimiter value={free}", address=owner, value=free, holders=holders)

    def _group(self, _: list[ChainLink], __: int, owner: int) -> Awaited | None:
        tasks = self._objects.attribute(owner, "_tasks") if self._objects.type_name(owner) == "TaskGroup" else 0
        return self._tasks("TaskGroup", owner, tasks) if tasks else None

    def _thread(self, links: list[ChainLink], i: int, _: int) -> Awaited | None:
        future = self._chains.variable(links[i], "future")
        return Awaited(kind="executor", detail="thread future running", address=future) if i == len(links) - 1 and future else None

    def _stream(self, links: list[ChainLink], i: int, owner: int) -> Awaited | None:
        state = self._objects.attribute(owner, "_state")
        held = self._objects.attribute(state, "buffer") if state else 0
        items = self._objects.length(held) if held else None
        name = f"{self._objects.type_name(owner)}.{links[i].frame.function.rpartition('.')[2]}"
        return Awaited(kind="queue", detail=f"{name} {'empty' if items == 0 else f'{items} items'}", address=state, value=items)

    # gRPC's coroutines

    def _grpc(self, links: list[ChainLink], i: int, _: int) -> Awaited | None:
        """A step of gRPC's core, which only the other end of a connection ends; over which one the core alone knows.

        What has no code in Python waits for the end of a call, and for nobody.
        """
        if i != len(links) - 1 or not any(link.frame.file for link in links):
            return None
        sends = any(link.frame.function.rpartition(".")[2] == "_send_message" for link in links)
        return Awaited(kind="socket", detail=f"socket {'write' if sends else 'read'}")

    # connections of HTTP clients

    def _aiohttp_pool(self, _: list[ChainLink], __: int, owner: int) -> Awaited:
        used = len(self._objects.set_items(self._objects.attribute(owner, "_acquired"))[0])
        return _pool("aiohttp", used, self._whole(owner, "_limit"), owner)

    def _httpcore_pool(self, links: list[ChainLink], i: int, _: int) -> Awaited | None:
        if i == 0:
            return None
        pool = self._chains.variable(links[i - 1], "self")
        used = self._objects.length(self._objects.attribute(pool, "_connections"))
        limit = self._whole(pool, "_max_connections")
        return _pool("httpx", used, limit, pool)

    def _whole(self, owner: int, name: str) -> int | None:
        at = self._objects.attribute(owner, name)
        value = self._objects.number(at) if at else None
        return value if isinstance(value, int) and abs(value) < 1 << 53 else None

    def _tasks(self, name: str, owner: int | None, items: int) -> Awaited:
        found = self._objects.set_items(items)[0][: self._limit]
        return Awaited(kind="gather", detail=f"{name} of {len(found)}", address=owner, tasks=tuple(a for a in found if self._is_task(a)))


def children_of(pid: int, proc: Path) -> dict[int, int]:
    """Ids of the live children of a process, as it sees them itself, to those of our PID namespace."""
    found = {}
    for tasks in (proc / str(pid) / "task").glob("*/children"):
        try:
            children = [int(word) for word in tasks.read_text().split()]
        except (OSError, ValueError):
            continue
        for child in children:
            try:
                rows = (proc / str(child) / "status").read_text("utf-8", "replace").splitlines()
            except OSError:
                continue
            inner = next((row.split()[-1] for row in rows if row.startswith("NSpid")), str(child))
            found[int(inner)] = child
    return found


def _pool(library: str, used: int | None, limit: int | None, address: int) -> Awaited:
    free = max(0, limit - used) if limit and used is not None else None
    return Awaited(kind="pool", detail=f"a free connection of {library}'s pool, {used} of {limit} in use", address=address, value=free)
