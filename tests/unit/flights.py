"""Builders of Flight Recorder dumps as torch writes them, for the tests of matching, reading and reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

WORLD = "0"
NOW_NS = 1_795_000_000_000_000_000


def entry(
    seq: int,
    op: str = "all_reduce",
    *,
    group: str = WORLD,
    desc: str = "default_pg",
    done: bool = True,
    size: int = 4,
    out: int | None = None,
    dtype: str = "Float",
    backend: str = "nccl",
    p2p: bool = False,
    state: str | None = None,
    at_s: float = 0.0,
) -> dict[str, Any]:
    """One entry; ``at_s`` seconds after the start of the run."""
    return {
        "process_group": [group, desc],
        "pg_id": int(group) if group.isdigit() else 7,
        "collective_seq_id": 0 if p2p else seq,
        "p2p_seq_id": seq if p2p else 0,
        "is_p2p": p2p,
        "profiling_name": f"{backend}:{op}",
        "input_sizes": [[size]],
        "output_sizes": [[size if out is None else out]],
        "input_dtypes": [dtype],
        "output_dtypes": [dtype],
        "state": state or ("completed" if done and backend == "nccl" else "scheduled" if backend == "gloo" else "started"),
        "retired": done,
        "time_created_ns": NOW_NS + int((at_s or seq) * 1e9),
    }


def dump(
    entries: Sequence[dict[str, Any]],
    *,
    groups: dict[str, Sequence[int]] | None = None,
    first_record: int = 0,
    enqueued: dict[str, int] | None = None,
    rank: int | None = None,
) -> dict[str, Any]:
    """A whole dump; without ``groups`` as gloo writes it, with one nameless group."""
    config: dict[str, Any] = {"": {"name": "", "desc": "", "ranks": "[0, 1]"}}
    if groups is not None:
        config = {name: {"name": name, "desc": f"group {name}", "ranks": str(list(ranks))} for name, ranks in groups.items()}
    last = enqueued if enqueued is not None else {}
    for one in entries:
        key = str(one["pg_id"])
        if not one["is_p2p"] and enqueued is None:
            last[key] = max(last.get(key, 0), one["collective_seq_id"])
    found: dict[str, Any] = {
        "version": "2.10",
        "pg_config": config,
        "pg_status": {key: {"last_enqueued_collective": str(n), "last_completed_collective": "0"} for key, n in last.items()},
        "entries": [{**one, "record_id": first_record + i} for i, one in enumerate(entries)],
    }
    return found if rank is None else {**found, "rank": rank}


def as_json(plain: dict[str, Any]) -> bytes:
    return json.dumps(plain).encode()
