"""One process at one moment as another tool wrote it: what every reader of foreign stacks gives back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ray_rl_debug.model.snapshot import Local

CodePlace = tuple[str, str, int]
"""Function, file and line; the line is 0 and the file empty where the text has none."""


class DumpThread(msgspec.Struct, kw_only=True):
    """One thread; `frames` innermost first."""

    frames: Sequence[CodePlace]
    tid: int | None = None
    name: str | None = None
    active: bool | None = None
    owns_gil: bool | None = None
    locals: tuple[Local, ...] = ()


class Dump(msgspec.Struct, kw_only=True):
    """One process; `pid` is None when the text does not say."""

    threads: list[DumpThread]
    source: str
    pid: int | None = None
    title: str | None = None
    python: str | None = None
    label: str | None = None
    """What the text calls it when it has no pid: ``DP3``."""
    native: bool = False
