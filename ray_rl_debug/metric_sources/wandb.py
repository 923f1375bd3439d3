"""W&B's offline file ``run-ID.wandb``: its records are decoded by wandb's own classes (extra ``wandb``).

The file is a log in LevelDB's form: a head of seven bytes (``:W&B``, a mark, a version), then blocks of 32 KiB with records of a crc, a length
and a type (whole, first, middle, last). wandb had a reader for it in Python up to 0.2x; now it is written in Go and cannot be called, so the
frames are taken apart here.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ray_rl_debug.bounded.opening import open_regular
from ray_rl_debug.metric_sources.gathered import Gathered, as_number, flat, flat_settings
from ray_rl_debug.model.errors import MissingExtraError, UnreadableFileError

HEAD = b":W&B"
HEAD_BYTES = 7
BLOCK_BYTES = 32768
_FRAME = struct.Struct("<IHB")
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
MAX_RECORD = 64 << 20


def files_in(folder: Path) -> list[Path]:
    """Files of offline runs in a folder, or in the folder ``wandb`` of it."""
    return sorted({p.resolve() for pattern in ("*.wandb", "*/*.wandb", "wandb/*/*.wandb") for p in folder.glob(pattern)})


def read(path: Path, into: Gathered) -> None:
    """History, settings and hardware of one run.

    Raises:
        MissingExtraError: wandb is not installed.
        UnreadableFileError: the file is none of W&B.
    """
    try:
        from google.protobuf.message import DecodeError
        from wandb.proto import wandb_internal_pb2 as proto
    except ImportError as e:
        raise MissingExtraError(f"offline files of W&B need wandb ({e})", hint="pip install 'ray-rl-debug[wandb]'") from e
    rows = damaged = 0
    with open_regular(path, follow=True) as f:
        if f.read(HEAD_BYTES)[:4] != HEAD:
            raise UnreadableFileError(f"{path}: this is no offline file of W&B")
        for data in _records(f):
            record = proto.Record()
            try:
                record.ParseFromString(data)
            except DecodeError:
                damaged += 1
                continue
            rows += _take(record, into)
    into.sources.append(f"{path.name}: W&B offline run, {rows:,} rows")
    if damaged:
        into.trouble(str(path), f"{damaged:,} records are damaged; the others were used")


def _take(record: Any, into: Gathered) -> int:
    if record.HasField("history"):
        row = {_name(item): _value(item) for item in record.history.item}
        step = record.history.step.num if record.history.HasField("step") else as_number(row.get("_step"))
        if step is None:
            return 0
        for name, value in flat({k: v for k, v in row.items() if not k.startswith("_")}):
            into.add(int(step), name, value)
        return 1
    for holder in ("run", "config"):
        if record.HasField(holder):
            config = record.run.config if holder == "run" else record.config
            for item in config.update:
                value = _value(item)
                for name, setting in flat_settings({_name(item).replace("/", "."): value}):
                    into.keep_setting(name, setting)
    if record.HasField("exit"):
        into.is_ended = True
    if "environment" in record.DESCRIPTOR.fields_by_name and record.HasField("environment"):
        gpus = record.environment.gpu_nvidia
        if gpus and gpus[0].name:
            into.settings.setdefault("gpu", gpus[0].name)
    return 0


def _name(item: Any) -> str:
    return str(item.key) or "/".join(item.nested_key)


def _value(item: Any) -> Any:
    try:
        return json.loads(item.value_json) if item.value_json else None
    except (ValueError, RecursionError):
        return None


def _records(f: IO[bytes]) -> Iterator[bytes]:
    """Whole records; the end of a file that is still written may be cut, and stands for nothing."""
    whole, at = b"", HEAD_BYTES
    while True:
        left = BLOCK_BYTES - at % BLOCK_BYTES
        if left < _FRAME.size:
            f.read(left)
            at += left
            continue
        head = f.read(_FRAME.size)
        if len(head) < _FRAME.size:
            return
        _, length, kind = _FRAME.unpack(head)
        data = f.read(length)
        if len(data) < length or kind not in (_WHOLE, _FIRST, _MIDDLE, _LAST):
            return
        at += _FRAME.size + length
        whole = data if kind in (_WHOLE, _FIRST) else whole + data
        if len(whole) > MAX_RECORD:
            whole = b""
        if kind in (_WHOLE, _LAST):
            yield whole
            whole = b""
