"""Lines of a log or a JSONL file that may be huge, cut off, gzipped, or not text at all."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ray_rl_debug.bounded.opening import open_regular

MAX_LINE = 4 << 20
"""Characters; a longer line is no row of metrics, and is cut."""


def open_lines(path: Path) -> IO[str]:
    """The file as text, unpacked where it is gzipped. Raises OSError."""
    file = open_regular(path, follow=True)
    if file.peek(2)[:2] == b"\x1f\x8b":
        return io.TextIOWrapper(gzip.GzipFile(fileobj=file), encoding="utf-8-sig", errors="replace")
    return io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace")


def read_lines(path: Path, cut: list[str]) -> Iterator[str]:
    """The lines; why the end is missing is put into `cut`. Raises OSError when the file cannot be opened."""
    with open_lines(path) as f:
        try:
            while line := f.readline(MAX_LINE):
                yield line
        except (EOFError, zlib.error, gzip.BadGzipFile):
            cut.append("the gzip data end too early; what came before was used")
        except OSError as e:
            cut.append(f"cannot be read to its end: {e.strerror or e}")
