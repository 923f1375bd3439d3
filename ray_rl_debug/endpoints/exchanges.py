"""Requests to an inference server and its answers, as lines of a file; and which recorded answer fits a new request."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ray_rl_debug.endpoints.prompts import read_bytes
from ray_rl_debug.model.errors import OutputError, UnreadableFileError

SCHEMA = "rayrl-debug/exchanges/1"
MAX_BYTES = 4 << 30
HINT = "give a file that rollout record wrote"
_ASKED = ("model", "messages", "prompt", "input_ids", "text", "input", "tools")
"""Fields of a request that say what is asked; the others say how tokens are chosen and told."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One request and its whole answer. No headers are kept: they hold keys."""

    method: str
    path: str
    request: Any = None
    status: int = 200
    content_type: str = "application/json"
    answer: str = ""
    """The body; of a stream, all of its events."""
    seconds: float | None = None

    @property
    def is_stream(self) -> bool:
        return self.content_type.startswith("text/event-stream")


class _Head(msgspec.Struct):
    schema: str = ""


class Writer:
    """Appends exchanges to a file that only the owner can read."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            OutputError: the file exists already, or cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
        except FileExistsError as e:
            raise OutputError(f"{path} is there already", hint="choose another file with -o") from e
        except OSError as e:
            raise OutputError(f"{path} cannot be written: {e.strerror}", hint="choose another file with -o") from e
        self._file.write(msgspec.json.encode({"schema": SCHEMA}) + b"\n")
        self._file.flush()
        self._path, self.count = path, 0

    def add(self, exchange: Exchange) -> None:
        self._file.write(msgspec.json.encode(exchange) + b"\n")
        self._file.flush()
        self.count += 1

    def close(self) -> None:
        """A file without an answer is removed: the next recording may have its name."""
        self._file.close()
        if not self.count:
            self._path.unlink(missing_ok=True)


def read_exchanges(path: Path) -> list[Exchange]:
    """What `Writer` wrote; a last line that was cut off is left out.

    Raises:
        UnreadableFileError: no such file, or another kind of file.
    """
    lines = read_bytes(path, MAX_BYTES).split(b"\n")
    try:
        schema = msgspec.json.decode(lines[0], type=_Head).schema
    except (msgspec.DecodeError, msgspec.ValidationError):
        schema = ""
    if schema != SCHEMA:
        raise UnreadableFileError(f"{path.name} holds no recorded requests", hint=HINT)
    found = []
    for number, line in enumerate(lines[1:], 2):
        if line.strip():
            try:
                found.append(msgspec.json.decode(line, type=Exchange))
            except msgspec.DecodeError as e:
                if number == len(lines):
                    break
                raise UnreadableFileError(f"{path.name}, line {number}: {e}", hint=HINT) from e
    if not found:
        raise UnreadableFileError(f"{path.name} holds no answers", hint=HINT)
    return found


class Shelf:
    """Recorded answers by what was asked; several answers to one question are given in turn."""

    def __init__(self, exchanges: Iterable[Exchange], *, any_answer: bool = False) -> None:
        """
        Args:
            any_answer: Give the next answer of the same path to a question that was never recorded.
        """
        self._rows: dict[object, list[Exchange]] = {}
        self._next: dict[object, int] = {}
        self._any = any_answer
        self.models: list[str] = []
        for one in exchanges:
            for key in _keys(one.method, one.path, one.request):
                self._rows.setdefault(key, []).append(one)
            name = one.request.get("model") if isinstance(one.request, dict) else None
            if isinstance(name, str) and name not in self.models:
                self.models.append(name)

    def find(self, method: str, path: str, request: object) -> Exchange | None:
        """The recorded answer to the same request, else to the same question with other sampling, else None."""
        keys = _keys(method, path, request)
        for key in keys if self._any else keys[:-1]:
            rows = self._rows.get(key)
            if rows:
                at = self._next.get(key, 0)
                self._next[key] = at + 1
                return rows[at % len(rows)]
        return None


def _keys(method: str, path: str, request: object) -> tuple[object, object, object]:
    """From the narrowest to the widest: the whole request, what it asks, its path. Streams are never mixed with whole answers."""
    is_stream = isinstance(request, Mapping) and bool(request.get("stream"))
    asked = {k: v for k, v in request.items() if k in _ASKED} if isinstance(request, Mapping) else request
    where = (method, path, is_stream)
    return (0, where, _text(request)), (1, where, _text(asked)), (2, where)


def _text(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")
