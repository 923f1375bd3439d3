"""torch's Flight Recorder: one dump, JSON or pickle, as a `FlightRecord`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ray_rl_debug.formats.restricted_pickle import load_plain
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.snapshot import AwaitFrame, CollectiveEntry, FlightRecord

MAX_ENTRIES = 20_000
MAX_FRAMES = 16

_RANK_IN_NAME = re.compile(r"rank[_-]?(\d+)")
_LAST_NUMBER = re.compile(r"(\d+)(?:\.\w+)?$")


def parse(data: bytes, source: str, *, rank: int | None = None, pid: int | None = None, taken_time_s: float | None = None) -> FlightRecord:
    """One dump, JSON or pickle, of torch 2.2 or newer.

    Raises:
        UnreadableFileError: neither of both, cut off, or not a Flight Recorder dump.
    """
    plain = _decode(data)
    if not isinstance(plain, Mapping) or not ({"entries", "pg_config", "pg_status"} & plain.keys()):
        raise UnreadableFileError("not a Flight Recorder dump")
    groups, descriptions = _groups(plain.get("pg_config"))
    entries = []
    numbers: list[int] = []
    names: dict[str, str] = {}
    for raw in _list(plain.get("entries"))[-MAX_ENTRIES:]:
        entry = _entry(raw)
        if entry is None or not isinstance(raw, Mapping):
            continue
        entries.append(entry)
        names.setdefault(_text(raw.get("pg_id")), entry.group)
        if (number := _int(raw.get("record_id"))) is not None:
            numbers.append(number)
        if raw_description := _description(raw):
            descriptions.setdefault(entry.group, raw_description)
    own_rank = _int(plain.get("rank"))
    return FlightRecord(
        source=source,
        rank=rank if own_rank is None else own_rank,
        pid=pid,
        groups=groups,
        group_descriptions=descriptions,
        entries=tuple(entries),
        taken_time_s=taken_time_s,
        first_record=min(numbers, default=None),
        enqueued=_enqueued(plain.get("pg_status"), names),
    )


def rank_of_name(name: str) -> int | None:
    """The rank a dump's file name tells: ``nccl_trace_rank_3``, ``rank3.json``, ``trace_3``."""
    found = _RANK_IN_NAME.search(name) or _LAST_NUMBER.search(name)
    return int(found[1]) if found and len(found[1]) <= 7 else None


def _decode(data: bytes) -> object:
    if data[:1] == b"\x80":
        return load_plain(data)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as e:
        raise UnreadableFileError("neither JSON nor a pickle, or cut off") from e


def _groups(config: object) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Members and descriptions. For gloo, torch writes one group without a name: then nothing is known of the members."""
    groups: dict[str, tuple[int, ...]] = {}
    descriptions: dict[str, str] = {}
    for key, value in config.items() if isinstance(config, Mapping) else ():
        if not isinstance(value, Mapping):
            continue
        name = _text(value.get("name")) or _text(key)
        members = _ranks(value.get("ranks"))
        if not name or not members:
            continue
        groups[name] = members
        if description := _text(value.get("desc")):
            descriptions[name] = description
    return groups, descriptions


def _enqueued(status: object, names: Mapping[str, str]) -> dict[str, int]:
    """Last enqueued collective by group; torch counts its groups in ``pg_status`` by a number that only the entries explain."""
    found = {}
    for key, value in status.items() if isinstance(status, Mapping) else ():
        last = _number(value.get("last_enqueued_collective")) if isinstance(value, Mapping) else None
        if last is not None and last >= 0 and _text(key) in names:
            found[names[_text(key)]] = last
    return found


def _number(value: object) -> int | None:
    """An integer, also where torch writes it as text."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value):
        return int(value)
    return _int(value)


def _ranks(value: object) -> tuple[int, ...]:
    if isinstance(value, str):  # "[0, 1]"
        return tuple(int(part) for part in re.findall(r"\d{1,7}", value[:1_000_000]))
    return tuple(rank for item in _list(value) if (rank := _int(item)) is not None)


def _entry(raw: object) -> CollectiveEntry | None:
    if not isinstance(raw, Mapping):
        return None
    is_p2p = raw.get("is_p2p") is True
    # torch before 2.5 counts both kinds in seq_id.
    seq = _int(raw.get("p2p_seq_id" if is_p2p else "collective_seq_id", raw.get("seq_id")))
    op = _text(raw.get("profiling_name"))
    if seq is None or not op:
        return None
    group = raw.get("process_group")
    named = _text(group[0]) if isinstance(group, (list, tuple)) and group else _text(group)
    return CollectiveEntry(
        group=named or _text(raw.get("pg_name")) or _text(raw.get("pg_id")),
        seq=seq,
        op=op,
        state=_text(raw.get("state")) or "scheduled",
        retired=raw["retired"] if isinstance(raw.get("retired"), bool) else None,
        is_p2p=is_p2p,
        input_sizes=_sizes(raw.get("input_sizes")),
        output_sizes=_sizes(raw.get("output_sizes")),
        input_dtypes=_texts(raw.get("input_dtypes")),
        output_dtypes=_texts(raw.get("output_dtypes")),
        created_time_s=_seconds(raw.get("time_created_ns")),
        started_time_s=_seconds(raw.get("time_discovered_started_ns")),
        completed_time_s=_seconds(raw.get("time_discovered_completed_ns")),
        frames=_frames(raw.get("frames")),
    )


def _description(raw: object) -> str:
    group = raw.get("process_group") if isinstance(raw, Mapping) else None
    return _text(group[1]) if isinstance(group, (list, tuple)) and len(group) > 1 else ""


def _frames(value: object) -> tuple[AwaitFrame, ...]:
    return tuple(
        AwaitFrame(function=_text(frame.get("name")), file=_text(frame.get("filename")) or None, line=_int(frame.get("line")))
        for frame in _list(value)[:MAX_FRAMES]
        if isinstance(frame, Mapping)
    )


def _sizes(value: object) -> tuple[tuple[int, ...], ...]:
    rows = _list(value)[:4096]
    if rows and all(_int(item) is not None for item in rows):
        rows = [rows]
    return tuple(tuple(n for item in _list(row)[:16] if (n := _int(item)) is not None) for row in rows)


def _texts(value: object) -> tuple[str, ...]:
    return (value[:40],) if isinstance(value, str) else tuple(_text(item)[:40] for item in _list(value)[:64])


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def _seconds(value: object) -> float | None:
    ns = _int(value)
    return ns / 1e9 if ns else None


def _text(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value[:300] if isinstance(value, str) else ""
