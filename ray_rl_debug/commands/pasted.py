"""``-`` and ``<(command)`` on the command line: what is pasted or piped in is one file more."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TypeVar

import click

from ray_rl_debug.model.errors import UnreadableFileError, UsageError

NAME = "pasted.txt"
PIPE = "pipe"
STDIN = 0
MAX_BYTES = 1 << 30
_PIECE = 1 << 20

T = TypeVar("T")


@contextlib.contextmanager
def with_pasted(files: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    """The files, with what comes through pipes read into files in their place: standard input for ``-``, and descriptors of our own such as
    ``/dev/fd/63``, which a shell gives for ``<(zcat log.gz)``. They are deleted at the end.

    Raises:
        UnreadableFileError: nothing was pasted, or more than `MAX_BYTES`.
        UsageError: ``-`` was given twice.
    """
    pipes = {f: number for f in files if (number := _own_pipe(f)) is not None}
    if not pipes:
        yield tuple(files)
        return
    if sum(pipes.get(f) == STDIN for f in files) > 1:
        raise UsageError("standard input can be read once", hint="give - once")
    with tempfile.TemporaryDirectory(prefix="rayrl-debug-") as folder:
        targets = {f: Path(folder) / (NAME if number == STDIN else f"{PIPE}{number}.txt") for f, number in pipes.items()}
        for file, target in targets.items():
            if not (_copy(_standard_input(), target) if pipes[file] == STDIN else _copy_descriptor(pipes[file], target)):
                said = "nothing was pasted" if pipes[file] == STDIN else f"nothing came through {file}"
                raise UnreadableFileError(said, hint="pipe the text in: rayrl-debug report - < issue.txt")
        yield tuple(targets.get(f, f) for f in files)


_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,6})")


def _own_pipe(file: Path) -> int | None:
    """The descriptor that a name on the command line stands for. A pipe that has a name in a folder is somebody else's: its reader waits for it."""
    if str(file) in ("-", "/dev/stdin"):
        return STDIN
    found = _DESCRIPTOR.fullmatch(str(file))
    return int(found[1]) if found and stat.S_ISFIFO(file.stat().st_mode) else None


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:
        raise UnreadableFileError("there is no standard input", hint="pipe the text in: rayrl-debug report - < issue.txt")
    if sys.stdin.isatty():
        click.echo("Paste the text, then press Enter and Ctrl-D.", err=True)
    return sys.stdin.buffer


def without_folder(value: T, files: Sequence[Path]) -> T:
    """The snapshot or report without the name of the folder in which the pasted text lay for a moment."""
    from ray_rl_debug.model.foreign_text import map_text

    pasted = next((f for f in files if f.parent.name.startswith("rayrl-debug-") and (f.name == NAME or f.name.startswith(PIPE))), None)
    if pasted is None:
        return value
    folder = pasted.parent
    return map_text(value, lambda text: text.replace(f"{folder}/", "").replace(folder.name, "pasted"))


def _copy_descriptor(number: int, target: Path) -> int:
    with os.fdopen(os.dup(number), "rb") as pipe:
        return _copy(pipe, target)


def _copy(pipe: IO[bytes], target: Path) -> int:
    total = 0
    with target.open("wb") as out:
        while piece := pipe.read(_PIECE):
            total += len(piece)
            if total > MAX_BYTES:
                raise UnreadableFileError(f"more than {MAX_BYTES >> 20} MiB came through a pipe", hint="give the file's name instead")
            out.write(piece)
    return total
