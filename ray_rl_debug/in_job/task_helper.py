"""Optional help from inside: a thread that tells the asyncio tasks of its process where nobody may read its memory.

    ray.init(runtime_env={"worker_process_setup_hook": "ray_rl_debug.task_helper.answer"})

It answers on a Unix socket, to processes of its own user and to root, and sleeps until somebody asks. It needs the GIL: a process whose GIL is held
does not answer, and one whose loop is blocked does. Standard library only.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import struct
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_TASKS, MAX_DEPTH, TRIES = 20_000, 200, 100
_PARTS = (("cr_frame", "cr_code", "cr_await"), ("gi_frame", "gi_code", "gi_yieldfrom"), ("ag_frame", "ag_code", "ag_await"))
_HOPS = frozenset({"coroutine_wrapper", "async_generator_asend", "async_generator_athrow"})
"""Awaitables written in C that only hold the next one, and do not tell it."""
_COROUTINES = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)
_started: set[int] = set()


def answer() -> None:
    """Answer from now on, in this process and in children that it forks. Never raises; calling it again does no harm."""
    try:
        if not _started:
            os.register_at_fork(after_in_child=_start)
        _start()
    except Exception:  # noqa: BLE001 a job must not fail because nobody can look at it
        pass


def address_of(uid: int, pid: int, start_ticks: int) -> str:
    """The name of a process's socket, in the abstract namespace of Linux: pid as the process sees it itself."""
    return f"\0rayrl-debug-tasks-{uid}-{pid}-{start_ticks}"


def describe_tasks(limit: int = MAX_TASKS) -> list[dict[str, Any]]:
    """All unfinished asyncio tasks of this process, from any thread, in the form that a snapshot has."""
    return [found for task in _tasks()[:limit] if (found := _describe(task)) is not None]


def tell(_: object = None) -> bytes:
    """The same as JSON; takes and ignores an actor, as what ``__ray_call__`` runs must."""
    return json.dumps(describe_tasks()).encode()


def _start() -> None:
    try:
        if os.getpid() not in _started:
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            server.bind(address_of(os.getuid(), os.getpid(), _start_ticks()))
            server.listen(4)
            threading.Thread(target=_serve, args=(server,), name="rayrl-debug-tasks", daemon=True).start()
            _started.add(os.getpid())
    except Exception:  # noqa: BLE001 as above; also in a child that was just forked
        pass


def _serve(server: socket.socket) -> None:
    while True:
        try:
            asker, _ = server.accept()
        except OSError:
            return
        with asker:
            try:
                asker.settimeout(5.0)
                _, uid, _ = struct.unpack("3i", asker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
                if uid in (0, os.getuid()):
                    asker.sendall(tell())
            except Exception:  # noqa: BLE001 the next one may have more luck
                continue


def _start_ticks() -> int:
    return int(Path("/proc/self/stat").read_text("utf-8", "replace").rpartition(") ")[2].split()[19])


def _tasks() -> list[Any]:
    registries = [getattr(asyncio.tasks, name, ()) for name in ("_all_tasks", "_scheduled_tasks", "_eager_tasks")]
    for _ in range(TRIES):  # another thread may add to them meanwhile
        try:
            found = {id(task): task for registry in registries for task in list(registry)}
            if sys.version_info >= (3, 14):
                found |= {id(t): t for loop in _loops() for t in asyncio.all_tasks(loop)}
            return [task for task in found.values() if not task.done()]
        except RuntimeError:
            continue
    return []


def _loops() -> Iterator[asyncio.AbstractEventLoop]:
    return (o for o in gc.get_objects() if isinstance(o, asyncio.AbstractEventLoop))


def _describe(task: Any) -> dict[str, Any] | None:
    try:
        chain, end, last = _follow(task.get_coro())
        waiter = getattr(task, "_fut_waiter", None)
        loop = task.get_loop()
        return {
            "address": id(task),
            "name": task.get_name()[:500],
            "chain": chain or [{"function": type(task.get_coro()).__qualname__}],
            "awaited": _awaited(waiter, end, last),
            "loop": id(loop),
            "tid": next((t.native_id for t in threading.enumerate() if t.ident == getattr(loop, "_thread_id", 0)), None),
        }
    except Exception:  # noqa: BLE001 it moves while we look
        return None


def _follow(coroutine: Any) -> tuple[list[dict[str, Any]], Any, Any]:
    """The chain, what stands at its end, and the object of asyncio whose method is the innermost coroutine."""
    chain: list[dict[str, Any]] = []
    owner = None
    while coroutine is not None and len(chain) < MAX_DEPTH:
        names = next((p for p in _PARTS if hasattr(coroutine, p[2])), None)
        if names is None:
            hidden = type(coroutine).__name__ in _HOPS
            coroutine = next((o for o in gc.get_referents(coroutine) if isinstance(o, _COROUTINES)), None) if hidden else coroutine
            if hidden and coroutine is not None:
                continue
            break
        frame, code = getattr(coroutine, names[0], None), getattr(coroutine, names[1], None)
        if code is None:  # one of Cython's: the head of every call of a Ray actor
            chain.append({"function": coroutine.__qualname__})
            coroutine = getattr(coroutine, names[2])
            continue
        chain.append({"function": coroutine.__qualname__, "file": code.co_filename, "line": frame.f_lineno if frame else code.co_firstlineno})
        if frame is not None and os.path.basename(os.path.dirname(code.co_filename)) == "asyncio":
            owner = frame.f_locals.get("self", owner)
        coroutine = getattr(coroutine, names[2])
    return chain, coroutine, owner


_KINDS = (
    (asyncio.Semaphore, "semaphore"),
    (asyncio.Lock, "lock"),
    (asyncio.Event, "event"),
    (asyncio.Condition, "condition"),
    (asyncio.Queue, "queue"),
)


def _awaited(waiter: Any, end: Any, owner: Any) -> dict[str, Any]:
    if waiter is None:
        return {"kind": "ready" if end is None else "unknown"}
    for name in [name for kind, name in _KINDS if isinstance(owner, kind)]:
        value = getattr(owner, "_value", None) if name == "semaphore" else owner.qsize() if name == "queue" else None
        state = f" value={value}" if name == "semaphore" else " locked" if name == "lock" and owner.locked() else ""
        return {"kind": name, "detail": f"{type(owner).__name__}{state}", "address": id(owner), "value": value}
    if isinstance(waiter, asyncio.Task):
        return {"kind": "task", "detail": "Task", "address": id(waiter), "tasks": [id(waiter)]}
    children = getattr(waiter, "_children", None)
    if children is not None:
        tasks = [id(c) for c in children if isinstance(c, asyncio.Task)]
        return {"kind": "gather", "detail": f"gather of {len(children)}", "address": id(waiter), "tasks": tasks}
    return {"kind": "future", "detail": type(waiter).__name__, "address": id(waiter)}
