"""Files as plain bytes, packed or not, read in blocks: gzip, UTF-16, and Zstandard where a library for it is installed."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ray_rl_debug.bounded.opening import open_regular
from ray_rl_debug.model.errors import UnreadableFileError

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
MAX_UNPACKED_BYTES = 256 << 30
"""A log that unpacks to more is an attack."""


def is_packed(head: bytes) -> bool:
    """Do these first bytes of a file say gzip, Zstandard or UTF-16?"""
    return head.startswith((GZIP, ZSTD, *UTF16))


def without_zeros(block: bytes) -> bytes:
    """Text without the zeros that stand in a log that was cut while its program wrote on, and in UTF-16 of plain letters."""
    return block.replace(b"\0", b"") if b"\0" in block else block


def blocks(path: Path, size: int, *, read: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """The plain bytes of a file, in blocks of at most `size`; not those that come while it is read.

    Args:
        read: Is told how many bytes of the file itself each block took.

    Raises:
        UnreadableFileError: damaged, cut off, larger than anything sensible, or packed in a way that no library here can read.
        OSError: no regular file, or it cannot be read.
    """
    with contextlib.ExitStack() as held:
        raw = held.enter_context(open_regular(path, follow=True))
        head = raw.peek(4)[:4]
        plain: Any = raw
        if head.startswith(GZIP):
            plain = held.enter_context(gzip.open(raw))
        elif head.startswith(ZSTD):
            plain = held.enter_context(_zstd(raw))
        elif head.startswith(UTF16):
            plain = _Utf16(raw)
        elif head == bytes(4):
            raw.seek(_behind_hole(raw))
        at, given = 0, 0
        end = os.fstat(raw.fileno()).st_size or None  # files of the kernel have no size
        while True:
            try:
                block = plain.read(size if end is None or plain is not raw else min(size, max(0, end - raw.tell())))
            except (EOFError, gzip.BadGzipFile) as e:
                raise UnreadableFileError(f"damaged or cut off ({e})") from e
            except OSError:
                raise
            except Exception as e:
                raise UnreadableFileError(f"damaged or cut off ({type(e).__name__}: {e})") from e
            if read is not None:
                now = raw.tell()
                read(now - at)
                at = now
            if not block:
                return
            given += len(block)
            if given > MAX_UNPACKED_BYTES:
                raise UnreadableFileError(f"more than {MAX_UNPACKED_BYTES >> 30} GiB when unpacked")
            yield block


class _Utf16:
    """A reader of UTF-16 that begins with its mark."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")

    def read(self, size: int) -> bytes:
        while data := self._raw.read(size // 2):
            if text := self._decoder.decode(data):
                return text.encode("utf-8", "replace")
        return b""


def _behind_hole(raw: BinaryIO) -> int:
    """Where the first bytes stand that the disk holds; a program whose log was cut writes on where it was."""
    try:
        return os.lseek(raw.fileno(), 0, os.SEEK_DATA)
    except OSError:
        return 0


def _zstd(raw: BinaryIO) -> Any:
    """A reader of Zstandard data: Python 3.14 has one, else the package ``zstandard``."""
    try:
        return importlib.import_module("compression.zstd").open(raw)
    except ImportError:
        pass
    try:
        library = importlib.import_module("zstandard")
    except ImportError:
        raise UnreadableFileError("packed with zstd; unpack it, or: pip install 'ray-rl-debug[logs]'") from None
    return library.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
