"""Prompts from a file: JSON lines, a list in JSON, Parquet (verl's data sets), or one plain text per line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ray_rl_debug.bounded.opening import open_regular
from ray_rl_debug.endpoints.extras import need
from ray_rl_debug.model.errors import UnreadableFileError

MAX_BYTES = 1 << 30
_NAMES = ("messages", "prompt", "text", "question", "input_ids", "ids")
"""Fields that may hold a prompt, in the order in which they are tried."""
_PARQUET = b"PAR1"
_HINT = 'one JSON object per line, with "messages", "prompt" or "text"; or a .txt file with one prompt per line'


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: messages, a plain text, or tokens."""

    key: str
    messages: tuple[dict[str, Any], ...] | None = None
    text: str | None = None
    ids: tuple[int, ...] | None = None
    data: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The whole record, for the function that gives rewards."""

    def words(self) -> list[str]:
        """The plain texts in it."""
        if self.messages is None:
            return [self.text] if self.text else []
        return [m["content"] for m in self.messages if isinstance(m.get("content"), str) and m["content"]]


def read_prompts(path: Path, limit: int | None = None) -> tuple[Prompt, ...]:
    """The first `limit` prompts of a file.

    Raises:
        UnreadableFileError: no file, too large, or no prompts in it.
    """
    data = read_bytes(path, MAX_BYTES)
    records = list(_parquet(path, limit) if data.startswith(_PARQUET) else _records(path, data))[:limit]
    prompts = tuple(_prompt(number, record, path) for number, record in enumerate(records))
    if not prompts:
        raise UnreadableFileError(f"{path.name} holds no prompts", hint=_HINT)
    if len({p.key for p in prompts}) < len(prompts):  # names that are not unique name nothing
        return tuple(msgspec.structs.replace(p, key=str(n)) for n, p in enumerate(prompts))
    return prompts


def read_bytes(path: Path, limit: int) -> bytes:
    """A whole regular file.

    Raises:
        UnreadableFileError: it cannot be opened, or has more than `limit` bytes.
    """
    try:
        with open_regular(path, follow=True) as file:
            data = file.read(limit + 1)
    except OSError as e:
        raise UnreadableFileError(f"{path.name}: {e.strerror or e}") from e
    if len(data) > limit:
        raise UnreadableFileError(f"{path.name} has more than {limit >> 20} MiB", hint="give a part of it")
    return data


def fingerprint(prompts: Sequence[Prompt]) -> str:
    """A short name for exactly these prompts in this order."""
    return hashlib.sha256(msgspec.json.encode([(p.key, p.messages, p.text, p.ids) for p in prompts])).hexdigest()[:16]


def _records(path: Path, data: bytes) -> Iterable[Any]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise UnreadableFileError(f"{path.name} is neither text nor Parquet", hint=_HINT) from e
    if path.suffix == ".txt":
        yield from (line for line in text.splitlines() if line.strip())
        return
    try:
        if text.lstrip().startswith("["):
            yield from msgspec.json.decode(data)
            return
    except msgspec.DecodeError as e:
        raise UnreadableFileError(f"{path.name} is no list in JSON: {e}", hint=_HINT) from e
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                yield msgspec.json.decode(line)
            except msgspec.DecodeError as e:
                raise UnreadableFileError(f"{path.name}, line {number}: {e}", hint=_HINT) from e


def _parquet(path: Path, limit: int | None) -> Iterable[Any]:
    parquet = need("pyarrow.parquet", "reading Parquet")
    try:
        batches = parquet.ParquetFile(path).iter_batches(batch_size=limit or 1024)
        for batch in batches:
            yield from batch.to_pylist()
    except (OSError, ValueError) as e:  # pyarrow's errors are of these two kinds
        raise UnreadableFileError(f"{path.name} is no whole Parquet file: {e}") from e


def _prompt(number: int, record: object, path: Path) -> Prompt:
    if isinstance(record, str):
        return Prompt(key=str(number), text=record)
    if not isinstance(record, dict):
        raise UnreadableFileError(f"{path.name}, prompt {number + 1} is neither an object nor a text", hint=_HINT)
    given = record.get("key", record.get("id", record.get("index", number)))
    key = str(given) if isinstance(given, (str, int)) else str(number)
    for name in _NAMES:
        value = record.get(name)
        if isinstance(value, str) and value:
            return Prompt(key=key, text=value, data=record)
        if isinstance(value, list) and value:
            if all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in value):
                return Prompt(key=key, messages=tuple(value), data=record)
            if all(type(i) is int and i >= 0 for i in value):
                return Prompt(key=key, ids=tuple(value), data=record)
    raise UnreadableFileError(f"{path.name}, prompt {number + 1} has none of {', '.join(_NAMES)}", hint=_HINT)
