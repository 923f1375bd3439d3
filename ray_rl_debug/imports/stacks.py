"""Stacks in a text file, whichever of the forms it is."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import msgspec

from ray_rl_debug.formats import flight_table, speedscope
from ray_rl_debug.formats.blocks import documents
from ray_rl_debug.formats.dump import Dump
from ray_rl_debug.formats.pasted.left import as_ranges
from ray_rl_debug.formats.pasted.read import read, read_all
from ray_rl_debug.formats.ray_lists import read_lists
from ray_rl_debug.imports import pyspy_json
from ray_rl_debug.imports.build import FileDumps
from ray_rl_debug.imports.sections import split_ranks, without_stamp
from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.snapshot import Gap

_SIGNS_OF_LISTS = (b"ACTOR_ID", b"TASK_ID", b"STATE_COUNTS", b" pending tasks/actors", b" pending placement groups")
MAX_LISTS = 4 << 20
"""Tables of Ray are looked for in so many bytes."""


def read_stacks(data: bytes, path: Path, node: str, time_s: float, troubles: list[Gap]) -> FileDumps | None:
    """The stacks of one file; None when there are none."""
    stem = path.name.rsplit(".", 1)[0]
    counters: list[tuple[int, bytes]] = []
    if speedscope.is_speedscope(data):
        dumps = speedscope.read(_json(data))
    elif _is_list(data):
        dumps = pyspy_json.read(data)
    else:
        data = data.removeprefix(codecs.BOM_UTF8)
        sections = split_ranks(data)
        if sections:
            stem = without_stamp(stem)
            dumps = _of_ranks(sections, path, troubles)
        else:
            dumps, left = read_all(data)
            if left:
                troubles.append(_left_gap(path, left))
        counters += flight_table.documents(data)
        for line, document in documents(data):
            if not _is_list(document):
                counters.append((line, document))
            elif b'"frames"' in document:
                dumps += _of_document(line, document, path, troubles)
    listed = read_lists(data[:MAX_LISTS].decode("utf-8", "replace")) if any(sign in data for sign in _SIGNS_OF_LISTS) else None
    if not dumps and not counters and listed is None:
        return None
    folder = path.resolve().parent
    return FileDumps(
        node=node,
        stem=stem,
        name=path.name,
        folder=folder.name,
        above=folder.parent.name,
        time_s=time_s,
        dumps=dumps,
        documents=tuple(counters),
        listed=listed,
    )


def _left_gap(path: Path, left: tuple[int, ...]) -> Gap:
    what = "1 line that looks like a frame" if len(left) == 1 else f"{len(left)} lines that look like frames"
    word = "line" if len(left) == 1 else "lines"
    return Gap(
        id=gaps.FRAMES_UNREAD,
        where=path.name,
        what=what,
        reason=f"{'it is' if len(left) == 1 else 'they are'} in no stack that was read: {word} {as_ranges(left)}",
        remedy="py-spy dump --pid PID, and give what it prints",
    )


def _is_list(data: bytes) -> bool:
    head = data[:4096].lstrip()
    return head[:1] == b"[" and head[1:50].lstrip()[:1] in (b"{", b"]", b"")


def _of_document(line: int, document: bytes, path: Path, troubles: list[Gap]) -> list[Dump]:
    """What ``py-spy dump --json`` printed, inside a text."""
    try:
        dumps = pyspy_json.read(document)
    except UnreadableFileError as e:
        troubles.append(Gap(id=gaps.FILE_UNREAD, where=path.name, what=f"the JSON in line {line}", reason=str(e)))
        return []
    return [msgspec.structs.replace(d, line=line) for d in dumps]


def _json(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as e:
        raise UnreadableFileError("JSON that is cut off or damaged") from e


def _of_ranks(sections: list[tuple[int, str]], path: Path, troubles: list[Gap]) -> list[Dump]:
    found = []
    for rank, body in sections:
        dumps = read(body)
        if not dumps:
            said = next((line.strip() for line in body.splitlines() if line.strip()), "nothing")
            troubles.append(Gap(id=gaps.FILE_UNREAD, where=path.name, what=f"stacks of rank {rank}", reason=f"it holds: {said[:120]}"))
        found += [msgspec.structs.replace(d, label=f"rank_{rank}", rank=rank) for d in dumps]
    return found
