"""Names, members and own ranks of torch's process groups, from the memory of their processes.

``torch.distributed.distributed_c10d`` keeps its groups in dicts of its module; the own rank stands in the C++ object behind each. A stack shows only
the address of a group, which says nothing to another process.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ray_rl_debug.bounded.own_time import own_time
from ray_rl_debug.collect.async_tasks.memory import BadRead, Memory, ProcessSource, Source, Spent
from ray_rl_debug.collect.async_tasks.objects import Objects
from ray_rl_debug.collect.async_tasks.runtime import Unsupported, attach
from ray_rl_debug.model.snapshot import TorchGroup, TorchGroups

TOTAL_S = 2.0
"""Of our processor, for all processes of a node; one takes about 0.03 s."""
EACH_S = 0.5
PATIENCE = 2.5
"""Seconds that may pass for each of these, as on a machine that others keep busy."""
MAX_GROUPS = 512
"""Of one process; Megatron with all its kinds of parallelism makes some tens."""
MAX_MEMBERS = 4096
MAX_DESCRIPTION = 64
MODULE = "torch.distributed.distributed_c10d"
LIBRARY = "libtorch_python"
_TABLES = ("_pg_names", "_pg_group_ranks", "_group_count", "_default_pg_init_method", "_world")
_NONSENSE = (BadRead, Spent, Unsupported, OSError, struct.error, ValueError, LookupError, OverflowError)
_SHOWN = ("tcp://", "env://")
_CPP_OBJECT = 16
"""Where pybind11 keeps the address of the C++ object."""
_RANK_PLACES = (24, 32)
"""Of rank and size in c10d::ProcessGroup: behind the store, with one word of reference counts before it (torch 2.13) or two (older)."""


class GroupsRead(NamedTuple):
    """What was read of some processes."""

    groups: dict[int, TorchGroups]
    unread: tuple[int, ...] = ()
    """For these no time was left: nothing is known of their groups."""


def read_all_torch_groups(
    pids: Iterable[int], *, total_s: float = TOTAL_S, proc: Path = Path("/proc"), clock: Callable[[], float] | None = None
) -> GroupsRead:
    """The groups of those processes that have any and may be read, as far as `total_s` seconds of `clock` go: by default a new `own_time`."""
    clock = clock or own_time(patience=PATIENCE)
    found, unread = {}, []
    for pid in pids:
        left = total_s - clock()
        try:
            groups = read_torch_groups(pid, deadline_s=min(EACH_S, left), proc=proc) if left > 0 else None
        except Spent:
            groups, left = None, 0.0
        if groups is not None:
            found[pid] = groups
        elif left <= 0:
            unread.append(pid)
    return GroupsRead(found, tuple(unread))


def read_torch_groups(pid: int, *, deadline_s: float = EACH_S, proc: Path = Path("/proc")) -> TorchGroups | None:
    """The groups of one process; None where torch is not loaded, has made none, or cannot be read.

    Raises:
        Spent: More of `own_time` was needed than `deadline_s`, or more bytes than are read of one process.
    """
    try:
        source = ProcessSource(pid, proc)
    except OSError:
        return None
    try:
        return read_from(source, deadline_s=deadline_s)
    finally:
        source.close()


def read_from(source: Source, *, deadline_s: float) -> TorchGroups | None:
    """As `read_torch_groups`, from any source of memory."""
    try:
        if not any(LIBRARY in m.path for m in source.mappings()):
            return None
        runtime = attach(Memory(source, deadline_s, clock=own_time(patience=PATIENCE)))
        if runtime is None:
            return None
        for interpreter in runtime.interpreters:
            module = runtime.modules(interpreter, [MODULE]).get(MODULE)
            if module is not None:
                return _groups(runtime.objects, runtime.objects.lookup(module, _TABLES))
    except Spent:
        raise
    except _NONSENSE:
        return None
    return None


def _groups(objects: Objects, tables: dict[str, int]) -> TorchGroups | None:
    ranks_of = dict(objects.dict_items(tables["_pg_group_ranks"])[:MAX_GROUPS])
    default = objects.attribute(tables["_world"], "_default_pg")
    found = []
    for address, name in objects.dict_items(tables["_pg_names"])[:MAX_GROUPS]:
        table = ranks_of.get(address)
        if table is None:
            continue
        size, is_default = objects.memory.word(table + 16), address == default
        rank, description = _own(objects, address, size)
        found.append(
            TorchGroup(
                name=objects.string(name),
                size=size,
                ranks=((0, size - 1, 1),) if is_default else _runs(_members(objects, table)) if size <= MAX_MEMBERS else None,
                rank=rank,
                description=description,
                is_default=is_default,
                address=address,
            )
        )
    if not found:
        return None
    count = objects.number(tables["_group_count"])
    return TorchGroups(groups=tuple(found), made=count if isinstance(count, int) else None, init_method=_meeting(objects, tables))


def _members(objects: Objects, table: int) -> list[int]:
    """Global ranks in the order of their places in the group."""
    pairs = [(objects.number(place), objects.number(rank)) for rank, place in objects.dict_items(table)]
    return [int(rank) for _, rank in sorted((p, r) for p, r in pairs if p is not None and r is not None)]


def _runs(ranks: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
    found: list[tuple[int, int, int]] = []
    at = 0
    while at < len(ranks):
        step = ranks[at + 1] - ranks[at] if at + 1 < len(ranks) else 1
        end = at + 1
        while end < len(ranks) and ranks[end] - ranks[end - 1] == step:
            end += 1
        found.append((ranks[at], ranks[end - 1], step) if end > at + 1 else (ranks[at], ranks[at], 1))
        at = end
    return tuple(found)


def _own(objects: Objects, address: int, size: int) -> tuple[int | None, str | None]:
    """Rank and description from the C++ object, where its layout is one that we know."""
    memory = objects.memory
    try:
        at = memory.word(address + _CPP_OBJECT)
        for place in _RANK_PLACES:
            store = memory.word(at + place - 8)
            rank, told = struct.unpack("<ii", memory.read(at + place, 8))
            if told == size and 0 <= rank < size and store > 1 << 16 and not store & 7:
                memory.word(store)  # there is an object
                return rank, _description(memory, at + place + 16)
    except _NONSENSE:
        pass
    return None, None


def _description(memory: Memory, place: int) -> str | None:
    """A std::string."""
    try:
        start, length = memory.words(place, 2)
        text = memory.read(start, length).decode() if 0 < length <= MAX_DESCRIPTION else ""
    except (*_NONSENSE, UnicodeDecodeError):
        return None
    return text if text.isprintable() and text not in ("", "undefined") else None


def _meeting(objects: Objects, tables: dict[str, int]) -> str | None:
    try:
        text = objects.string(tables["_default_pg_init_method"])
    except _NONSENSE:
        return None
    return text if text.startswith(_SHOWN) else text.partition("//")[0] + "//"
