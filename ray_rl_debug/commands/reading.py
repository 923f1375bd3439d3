"""A progress bar on stderr while many logs are read; none for a pipe, for little, or with ``-q``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

MIN_BYTES = 64 << 20
"""Less is read before anybody wonders."""


@contextlib.contextmanager
def reading(files: Sequence[Path], *, quiet: bool) -> Iterator[Callable[[int], None] | None]:
    """A function that is told how many bytes more were read; None where nobody looks."""
    total = 0 if quiet or not sys.stderr.isatty() else _bytes(files)
    if total < MIN_BYTES:
        yield None
        return
    with click.progressbar(length=total, label=f"reading {total / 1e9:.1f} GB", file=sys.stderr, update_min_steps=1 << 24) as bar:
        yield bar.update


def _bytes(files: Sequence[Path]) -> int:
    total = 0
    for path in files:
        for one in path.rglob("*") if path.is_dir() else (path,):
            with contextlib.suppress(OSError):  # gone meanwhile, or no right to look: the reading will say so
                total += one.stat().st_size if one.is_file() else 0
    return total
