"""Stacks in a text file, whichever of the forms it is."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from ray_rl_debug.formats import speedscope
from ray_rl_debug.formats.dump import Dump
from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.imports import pyspy_json
from ray_rl_debug.imports.build import FileDumps
from ray_rl_debug.imports.sections import split_ranks, without_stamp
from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.snapshot import Gap


def read_stacks(data: bytes, path: Path, node: str, time_s: float, troubles: list[Gap]) -> FileDumps | None:
    """The stacks of one file; None when there are none."""
    stem = path.name.rsplit(".", 1)[0]
    if speedscope.is_speedscope(data):
        dumps = speedscope.read(_json(data))
    elif data.lstrip()[:1] == b"[" and data.lstrip()[1:50].lstrip()[:1] in (b"{", b"]", b""):
        dumps = pyspy_json.read(data)
    else:
        text = data.decode("utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8", "replace")
        sections = split_ranks(text)
        if sections:
            stem = without_stamp(stem)
            dumps = _of_ranks(sections, path, troubles)
        else:
            dumps = read(text)
    return FileDumps(node=node, stem=stem, name=path.name, time_s=time_s, dumps=dumps) if dumps else None


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
