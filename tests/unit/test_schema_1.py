"""Snapshots of schema 1 as they were once stored: they are read for ever, and nothing in them changes its meaning.

``hang.json.gz`` is a real capture; in ``every-field-*.json.gz`` each field of each structure has a value of its own that is not its default.
The files are never written again. A field that is added needs a default and no change here.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model import codec
from ray_rl_debug.model.report import Cause, State

STORED = Path(__file__).resolve().parents[1] / "data" / "schema-1"
FILES = ("hang", "every-field-true", "every-field-false")


def plain(name: str) -> Any:
    return json.loads(gzip.decompress((STORED / f"{name}.json.gz").read_bytes()))


def lost(before: Any, after: Any, where: str = "") -> list[str]:
    """Places of the stored document that do not come back as they were."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [place for key, value in before.items() for place in lost(value, after.get(key, "nothing"), f"{where}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [place for i, (one, other) in enumerate(zip(before, after, strict=True)) for place in lost(one, other, f"{where}[{i}]")]
    return [] if before == after and type(before) is type(after) else [f"{where}: {before!r} became {after!r}"]


@pytest.mark.parametrize("name", FILES)
def test_every_stored_value_comes_back(name: str) -> None:
    snapshot = codec.read_snapshot(STORED / f"{name}.json.gz")
    assert lost(plain(name), json.loads(codec.encode(snapshot))) == []
    assert codec.decode_snapshot(codec.encode_compressed(snapshot)) == snapshot


def test_fields_of_later_versions_are_ignored() -> None:
    document = plain("every-field-true")

    def add(value: Any, key: str = "") -> None:
        if isinstance(value, dict):
            for inner_key, inner in value.items():
                add(inner, inner_key)
            if len(value) > 1 or "schema" in value:  # mappings of the stored file have one entry, structures have more
                value["a_field_of_the_future"] = {"x": [1, None]}
        elif isinstance(value, list):
            for inner in value:
                add(inner)

    add(document)
    assert codec.decode_snapshot(json.dumps(document).encode()) == codec.read_snapshot(STORED / "every-field-true.json.gz")


def test_the_hang_is_still_told() -> None:
    report = diagnose(codec.read_snapshot(STORED / "hang.json.gz"))
    assert report.verdict.state is State.HANG
    first = report.findings[0]
    assert first.cause is Cause.COLLECTIVE_MISMATCH
    assert [w.actor for w in first.who] == ["policy_trainer_2"]


def test_what_stands_where() -> None:
    """Some meanings, written out."""
    snapshot = codec.read_snapshot(STORED / "hang.json.gz")
    (node,) = snapshot.nodes
    process = next(p for p in node.processes if p.kind == "ray-worker" and p.title.endswith(".update_policy"))
    sample = process.samples[0]
    main = next(t for t in sample.threads if t.name == "MainThread")
    innermost = node.frames[node.stacks[main.stack][0]]
    assert innermost.function in ("all_reduce", "all_gather")
    assert innermost.file == "torch/distributed/distributed_c10d.py"
    assert main.tid == process.pid
    assert snapshot.ray is not None
    assert {a.name for a in snapshot.ray.actors} >= {f"policy_trainer_{i}" for i in range(4)}
    assert msgspec.structs.asdict(snapshot)["schema"] == "rayrl-debug/snapshot/1"
