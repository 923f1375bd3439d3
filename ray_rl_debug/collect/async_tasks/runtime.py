"""A live CPython: its version, the layout of its objects, its interpreters, threads and modules."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ray_rl_debug.collect.async_tasks.elf import EM_AARCH64, EM_X86_64, Image, find_python
from ray_rl_debug.collect.async_tasks.layout import (
    ASYNCIO_DEBUG_WORDS,
    COOKIE,
    DEBUG_OFFSETS,
    FREE_THREADED,
    INTERPRETER_SIZE,
    LAYOUTS,
    Layout,
    TaskLists,
)
from ray_rl_debug.collect.async_tasks.memory import BadRead, Memory
from ray_rl_debug.collect.async_tasks.objects import Objects

MAX_INTERPRETERS, MAX_THREADS, MAX_MODULE = 64, 65536, 1 << 23
GLIBC_TID = {EM_X86_64: 720, EM_AARCH64: 208}
"""Where glibc keeps the thread id behind a ``pthread_t``, by the machine that the program is for (its ``struct pthread`` begins with the thread's
control block on x86-64, and behind it on aarch64). Used for 3.10 only, and only when it is a thread of the process."""
_NAMED_VERSION = re.compile(r"python3\.(\d+)")


class Unsupported(Exception):
    """A CPython whose memory we do not know how to read."""


class Runtime:
    """An attached interpreter process."""

    def __init__(self, memory: Memory, image: Image, runtime: int, objects: Objects, interpreters: tuple[int, ...]) -> None:
        self.memory, self.image, self.runtime, self.objects, self.layout = memory, image, runtime, objects, objects.layout
        self.interpreters = interpreters

    def modules(self, interpreter: int, names: Iterable[str]) -> dict[str, int]:
        """The ``__dict__`` of those of these modules that are imported."""
        table = self.memory.word(interpreter + self.layout.interp_modules)
        found = self.objects.lookup(table, names)
        kinds = {name: self.objects.type_of(address) for name, address in found.items()}
        # None stands for a module that must not be imported; what is no module at all may stand there too
        return {name: self.memory.word(address + 16) for name, address in found.items() if (kind := kinds[name]) and "odule" in kind.name}

    def threads(self, interpreter: int) -> dict[int, int | None]:
        """Native id, as the target sees it, of each ``pthread_t`` that runs Python; None where this version does not keep it."""
        found: dict[int, int | None] = {}
        native = self.layout.thread_native
        for at in self.thread_states(interpreter):
            ident = self.memory.word(at + self.layout.thread_ident)
            found[ident] = self.memory.word(at + native) if native is not None else self._tid_of_glibc(ident)
        return found

    def thread_states(self, interpreter: int) -> list[int]:
        """Addresses of the interpreter's thread states."""
        found: dict[int, None] = {}
        at = self.memory.word(interpreter + self.layout.interp_threads)
        while at and at not in found and len(found) < MAX_THREADS:
            found[at] = None
            at = self.memory.word(at + self.layout.thread_next)
        return list(found)

    def task_lists(self) -> TaskLists | None:
        """Where 3.14 chains its tasks; None in other versions.

        Raises:
            Unsupported: the table was not found.
        """
        if self.layout.version < (3, 14):
            return None
        size = self.memory.word(self.runtime + INTERPRETER_SIZE)
        start = struct.pack("<Q", self.layout.task_size)
        places = [m for m in self.memory.mappings if "/_asyncio." in m.path] or [m for m in self.memory.mappings if m.path == self.image.path]
        for place in places:
            try:
                data = self.memory.read(place.start, min(place.end - place.start, MAX_MODULE))
            except BadRead:
                continue
            at = data.find(start)
            while 0 <= at <= len(data) - 8 * ASYNCIO_DEBUG_WORDS:
                words = struct.unpack_from(f"<{ASYNCIO_DEBUG_WORDS}Q", data, at)
                if words[7] == size and all(w < words[0] for w in words[1:7]) and words[8] < size and all(w < words[9] < 1 << 16 for w in words[10:]):
                    return TaskLists(task_node=words[6], interp_head=words[8], thread_task=words[11], thread_head=words[12])
                at = data.find(start, at + 8)
        raise Unsupported("the list of tasks of this build was not found")

    def _tid_of_glibc(self, ident: int) -> int | None:
        offset = GLIBC_TID.get(self.image.machine)
        if offset is None:
            return None
        try:
            (tid,) = struct.unpack("<i", self.memory.read(ident + offset, 4))
        except BadRead:
            return None
        return int(tid) if tid > 0 else None


def attach(memory: Memory) -> Runtime | None:
    """The Python inside a process; None when there is none.

    Raises:
        Unsupported: Python, but not one that we can read for sure.
    """
    image = find_python(memory)
    runtime = image.find("_PyRuntime") if image is not None else None
    if image is None or runtime is None:
        return None
    version = _version(memory, image)
    if version not in LAYOUTS:
        raise Unsupported(f"no known layout of CPython {version[0]}.{version[1]}")
    layout = _own_offsets(memory, runtime, LAYOUTS[version])
    objects = Objects(memory, layout)
    interpreters = tuple(_interpreters(memory, runtime, layout))
    found = Runtime(memory, image, runtime, objects, interpreters)
    if not any(_is_confirmed(found, interpreter) for interpreter in interpreters):
        raise Unsupported(f"the layout of CPython {version[0]}.{version[1]} does not fit this build, or it is just starting")
    return found


def find_version(memory: Memory) -> tuple[int, int] | None:
    """``(3, 12)``, also of versions that we cannot read; None where there is no Python. Raises BadRead, Spent."""
    image = find_python(memory)
    return _version(memory, image) if image is not None else None


def _version(memory: Memory, image: Image) -> tuple[int, int]:
    at = image.find("Py_Version")
    if at:
        value = memory.word(at)
        return value >> 24 & 255, value >> 16 & 255
    named = _NAMED_VERSION.search(image.path.rpartition("/")[2])  # 3.10 has no such symbol; sys.hexversion confirms
    return 3, int(named[1]) if named else 10


def _own_offsets(memory: Memory, runtime: int, layout: Layout) -> Layout:
    places = DEBUG_OFFSETS.get(layout.version)
    if places is None:
        return layout
    if memory.read(runtime, len(COOKIE)) != COOKIE:
        raise Unsupported("no _Py_DebugOffsets")
    if memory.word(runtime + FREE_THREADED):
        raise Unsupported("a build without a GIL")
    own = {field: memory.word(runtime + place) for field, place in places.items()}
    if any(offset > 1 << 24 for offset in own.values()):
        raise Unsupported("_Py_DebugOffsets is not valid")
    return msgspec.structs.replace(layout, **own)


def _interpreters(memory: Memory, runtime: int, layout: Layout) -> Iterable[int]:
    at, seen = memory.word(runtime + layout.runtime_interpreters), set[int]()
    while at and at not in seen and len(seen) < MAX_INTERPRETERS:
        seen.add(at)
        yield at
        at = memory.word(at + layout.interp_next)


def _is_confirmed(runtime: Runtime, interpreter: int) -> bool:
    """Is ``sys.hexversion`` where the layout says, and of the layout's version?"""
    try:
        own = runtime.modules(interpreter, ["sys"])
        value = runtime.objects.number(runtime.objects.lookup(own["sys"], ["hexversion"])["hexversion"])
    except (BadRead, KeyError):
        return False
    return isinstance(value, int) and (value >> 24 & 255, value >> 16 & 255) == runtime.layout.version


def native_threads(pid: int, proc: Path) -> dict[int, int]:
    """The target's own thread ids to those of our PID namespace."""
    folder = proc / str(pid) / "task"
    try:
        tids = [int(name) for name in os.listdir(folder)]
        ids = _namespace_ids(folder / str(tids[0]) / "status")
    except (OSError, ValueError, IndexError):
        return {}
    if len(ids) <= 1:
        return {tid: tid for tid in tids}
    found = {}
    for tid in tids:
        try:
            inner = _namespace_ids(folder / str(tid) / "status")
        except (OSError, ValueError):
            continue
        if inner:
            found[inner[-1]] = tid
    return found


def _namespace_ids(status: Path) -> list[int]:
    with status.open() as lines:
        return next(([int(word) for word in line.split()[1:]] for line in lines if line.startswith("NSpid")), [])
