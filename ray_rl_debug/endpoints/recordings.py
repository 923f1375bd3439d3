"""Answers kept in a file, one JSON object per line after a head: read, written as they come, continued after an interruption."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from ray_rl_debug.endpoints.prompts import read_bytes
from ray_rl_debug.model.codec import encode
from ray_rl_debug.model.errors import OutputError, UnreadableFileError, UsageError
from ray_rl_debug.rollouts.answers import Answer

SCHEMA = "rayrl-debug/rollouts/1"
MAX_BYTES = 4 << 30
HINT = "give a file that rollout compare -o wrote, such as DIR/engine.jsonl"


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What the answers of a file are answers to."""

    schema: str = SCHEMA
    name: str = ""
    """Who answered: model and address, or folder."""
    prompts: str = ""
    """Fingerprint of the prompts."""
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    samples: int = 1
    precision: str | None = None


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    head: Head
    answers: tuple[Answer, ...]
    notes: tuple[str, ...] = ()
    """What was left out of the file, and why."""


def is_recording(data: bytes) -> bool:
    return SCHEMA.encode() in data[:4096].split(b"\n", 1)[0]


def read_recording(path: Path) -> Recording:
    """A file of answers.

    Raises:
        UnreadableFileError: cannot be opened, or is none.
    """
    lines = read_bytes(path, MAX_BYTES).split(b"\n")
    try:
        head = msgspec.json.decode(lines[0], type=Head)
    except (msgspec.DecodeError, msgspec.ValidationError) as e:
        raise UnreadableFileError(f"{path.name} is no recording of answers", hint=HINT) from e
    if head.schema != SCHEMA:
        raise UnreadableFileError(f"{path.name} has the schema {head.schema!r}, not {SCHEMA}", hint=HINT)
    decode = msgspec.json.Decoder(Answer).decode
    found: dict[tuple[str, int], Answer] = {}
    notes = []
    repeated = 0
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        try:
            one = decode(line)
        except msgspec.DecodeError as e:
            if number == len(lines):
                notes.append("the last line is cut off")  # of a writer that was interrupted
                break
            raise UnreadableFileError(f"{path.name}, line {number}: {e}", hint=HINT) from e
        repeated += (one.key, one.sample) in found
        found[one.key, one.sample] = one
    if repeated:
        notes.append(f"prompt and sample come again {repeated:,} times; the last answer of each was used")
    return Recording(head=head, answers=tuple(found.values()), notes=tuple(notes))


class Keeper:
    """Writes each answer when it comes; knows those that an earlier run wrote to the same questions."""

    def __init__(self, path: Path | None, head: Head) -> None:
        """
        Args:
            path: None keeps nothing.

        Raises:
            UsageError: the file holds answers to other questions.
            OutputError: it cannot be written.
        """
        self.known: dict[tuple[str, int], Answer] = {}
        self._file = None
        if path is None:
            return
        try:
            if path.exists() and path.stat().st_size:
                self._continue(path, head)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(encode(head) + b"\n")
            self._file = path.open("ab")
        except OSError as e:
            raise OutputError(f"{path} cannot be written: {e.strerror or e}") from e

    def _continue(self, path: Path, head: Head) -> None:
        old = read_recording(path)
        if old.head != head:
            changed = [name for name in Head.__struct_fields__ if getattr(old.head, name) != getattr(head, name)]
            raise UsageError(f"{path} holds answers to other questions ({', '.join(changed)} changed)", hint="give another folder with -o")
        # A failure is asked again, and a half-written last line goes.
        kept = [answer for answer in old.answers if answer.error is None]
        new = path.with_name(path.name + ".new")
        new.write_bytes(b"".join(encode(one) + b"\n" for one in (head, *kept)))
        os.replace(new, path)
        self.known = {(answer.key, answer.sample): answer for answer in kept}

    def add(self, answer: Answer) -> None:
        self.known[answer.key, answer.sample] = answer
        if self._file is not None:
            self._file.write(encode(answer) + b"\n")
            self._file.flush()

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()


def in_order(answers: Iterable[Answer], keys: Sequence[str]) -> list[Answer]:
    """Answers in the order of the prompts, then of their samples."""
    place = {key: n for n, key in enumerate(keys)}
    return sorted(answers, key=lambda a: (place.get(a.key, len(place)), a.key, a.sample))
