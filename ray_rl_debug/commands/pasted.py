"""``-`` on the command line: what is pasted or piped into standard input is one file more."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import click

from ray_rl_debug.model.errors import UnreadableFileError, UsageError

NAME = "pasted.txt"
MAX_BYTES = 1 << 30
_PIECE = 1 << 20

T = TypeVar("T")


@contextlib.contextmanager
def with_pasted(files: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    """The files, with standard input read into a file in the place of ``-``; it is deleted at the end.

    Raises:
        UnreadableFileError: nothing was pasted, or more than `MAX_BYTES`.
        UsageError: ``-`` was given twice.
    """
    asked = [f for f in files if str(f) == "-"]
    if not asked:
        yield tuple(files)
        return
    if len(asked) > 1:
        raise UsageError("standard input can be read once", hint="give - once")
    if sys.stdin is None:
        raise UnreadableFileError("there is no standard input", hint="pipe the text in: rayrl-debug report - < issue.txt")
    if sys.stdin.isatty():
        click.echo("Paste the text, then press Enter and Ctrl-D.", err=True)
    with tempfile.TemporaryDirectory(prefix="rayrl-debug-") as folder:
        target = Path(folder) / NAME
        if not _copy(target):
            raise UnreadableFileError("nothing was pasted", hint="pipe the text in: rayrl-debug report - < issue.txt")
        yield tuple(target if f in asked else f for f in files)


def without_folder(value: T, files: Sequence[Path]) -> T:
    """The snapshot or report without the name of the folder in which the pasted text lay for a moment."""
    from ray_rl_debug.model.foreign_text import map_text

    pasted = next((f for f in files if f.name == NAME and f.parent.name.startswith("rayrl-debug-")), None)
    if pasted is None:
        return value
    folder = pasted.parent
    return map_text(value, lambda text: text.replace(f"{folder}/", "").replace(folder.name, "pasted"))


def _copy(target: Path) -> int:
    total = 0
    with target.open("wb") as out:
        while piece := sys.stdin.buffer.read(_PIECE):
            total += len(piece)
            if total > MAX_BYTES:
                raise UnreadableFileError(f"more than {MAX_BYTES >> 20} MiB came through standard input", hint="give the file's name instead of -")
            out.write(piece)
    return total
