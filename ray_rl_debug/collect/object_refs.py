"""Which objects a thread blocked in ``ray.get`` or ``ray.wait`` waits for, read from outside.

py-spy prints the addresses of the ObjectRefs; the 28-byte id stands inside the C++ part of each, at the same offset in every process
with the same Ray. The first 24 bytes are the id of the task that makes the object, the last four the return index.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from ray_rl_debug.formats.pyspy_json import RawFrame, RawLocal, RawThread
from ray_rl_debug.model.snapshot import ObjectRefWait

ID_BYTES = 28
FALLBACK_OFFSET = 32
"""As measured with Ray 2.60 on CPython 3.11."""
MAX_RETURN_INDEX = 65536
MAX_REFS = 4096

_ADDRESS = re.compile(r"ObjectRef at (0x[0-9a-f]+)")
_CALLS = {"get_objects": "get", "get": "get", "wait": "wait"}
_NAMES = ("object_refs", "ray_waitables")
_LIST_SIZE_OFFSET = 16


@functools.cache
def id_offset() -> int:
    """Offset of the id inside an ObjectRef, found on one of our own when Ray is loaded in this process."""
    ray = sys.modules.get("ray")
    if ray is None:
        return FALLBACK_OFFSET
    pattern = bytes(range(1, ID_BYTES + 1))
    try:
        reference = ray.ObjectRef(pattern)
        found = ctypes.string_at(id(reference), sys.getsizeof(reference)).find(pattern)
    except (AttributeError, TypeError, ValueError):
        return FALLBACK_OFFSET
    return found if found > 0 else FALLBACK_OFFSET


def is_object_id(raw: bytes) -> bool:
    """Could these bytes be an ObjectID: full length, not empty, a small return index?"""
    if len(raw) != ID_BYTES or not any(raw[:24]):
        return False
    return 1 <= int.from_bytes(raw[24:], "little") <= MAX_RETURN_INDEX


def find_waits(pid: int, threads: Iterable[RawThread], proc: Path = Path("/proc")) -> tuple[ObjectRefWait, ...]:
    """What each thread of a process waits for in ``ray.get`` or ``ray.wait``; empty when it does not, or its memory may not be read."""
    places = [(thread, *place) for thread in threads if (place := _waiting_place(thread.frames)) is not None]
    if not places:
        return ()
    try:
        with (proc / str(pid) / "mem").open("rb", buffering=0) as memory:
            waits = [_wait(memory, thread.os_thread_id, call, local) for thread, call, local in places]
    except OSError:
        return ()
    return tuple(wait for wait in waits if wait is not None)


def _waiting_place(frames: Sequence[RawFrame]) -> tuple[str, RawLocal] | None:
    for frame in frames:
        call = _CALLS.get(frame.name.rpartition(".")[2])
        if call is None or not frame.filename.endswith("ray/_private/worker.py"):
            continue
        for local in frame.locals or ():
            if local.name in _NAMES and _ADDRESS.search(local.repr or ""):
                return call, local
    return None


def _wait(memory: BinaryIO, tid: int | None, call: str, local: RawLocal) -> ObjectRefWait | None:
    text = local.repr or ""
    addresses = [int(a, 16) for a in _ADDRESS.findall(text)]
    complete = "..." not in text
    if not complete and text.startswith("["):
        whole = _list_items(memory, local.addr, addresses)
        if whole is not None:
            addresses, complete = whole, True
    ids = _ids(memory, addresses)
    if not ids:
        return None
    return ObjectRefWait(call=call, object_ids=ids, tid=tid, complete=complete and len(ids) == len(addresses))


def _list_items(memory: BinaryIO, address: int, shown: Sequence[int]) -> list[int] | None:
    """All items of a Python list, when its first ones are those that py-spy showed."""
    head = _read(memory, address + _LIST_SIZE_OFFSET, 16)
    if head is None:
        return None
    size, items = struct.unpack("<qQ", head)
    if not len(shown) <= size <= MAX_REFS:
        return None
    raw = _read(memory, items, 8 * size)
    if raw is None:
        return None
    found = list(struct.unpack(f"<{size}Q", raw))
    return found if found[: len(shown)] == list(shown) else None


def _ids(memory: BinaryIO, addresses: Sequence[int]) -> tuple[str, ...]:
    offset = id_offset()
    blocks = (_read(memory, address + offset, ID_BYTES) for address in addresses)
    return tuple(raw.hex() for raw in blocks if raw is not None and is_object_id(raw))


def _read(memory: BinaryIO, address: int, size: int) -> bytes | None:
    with contextlib.suppress(OSError, ValueError, OverflowError):
        memory.seek(address)
        data = memory.read(size)
        return data if data is not None and len(data) == size else None
    return None
