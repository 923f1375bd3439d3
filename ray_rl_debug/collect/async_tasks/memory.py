"""Bounded reads of another process's memory, without stopping it.

`Source` is the edge to the operating system; everything above it takes any object of that shape.
"""

from __future__ import annotations

import bisect
import errno
import os
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ray_rl_debug.collect.procfs import read_text

PAGE = 4096
CHUNK = 1 << 15
"""Bytes per cached read: 4 KiB costs four times the calls, 256 KiB twice the time."""
MAX_READ = 1 << 25
MAX_MAPS_BYTES = 64 << 20
"""Of ``/proc/PID/maps``; a process with 65,000 mappings has 7 MB."""
MAX_TOTAL = 1 << 29
"""Bytes one snapshot of one process may read; 12,000 tasks need about 35 MB."""
_WORD = struct.Struct("<Q")


class BadRead(Exception):
    """Nothing readable, or nothing sensible, at an address."""


class Spent(Exception):
    """The time or the bytes allowed for one read are used up."""


class Mapping(msgspec.Struct, frozen=True):
    """One readable line of ``/proc/PID/maps``."""

    start: int
    end: int
    offset: int
    inode: int
    path: str


class Source(Protocol):
    """What the operating system gives of a process."""

    def mappings(self) -> Sequence[Mapping]:
        """Readable mappings, ascending. Raises OSError."""

    def pread(self, size: int, address: int) -> bytes:
        """Up to `size` bytes; fewer at a border. Raises OSError, ValueError, OverflowError."""


class ProcessSource:
    """A live process through ``/proc/PID/mem``. Raises OSError when that may not be opened."""

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self._maps = proc / str(pid) / "maps"
        self._fd = os.open(str(proc / str(pid) / "mem"), os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._fd)

    def mappings(self) -> list[Mapping]:
        text = read_text(self._maps, MAX_MAPS_BYTES)
        if text is None:
            raise OSError(errno.EIO, "its memory map cannot be read")
        return [m for line in text.splitlines() if (m := _mapping(line)) is not None]

    def pread(self, size: int, address: int) -> bytes:
        return os.pread(self._fd, size, address)


def _mapping(line: str) -> Mapping | None:
    part = line.split(None, 5)
    path = part[5] if len(part) > 5 else ""
    if len(part) < 5 or "r" not in part[1] or path.startswith(("[vvar", "[vsys", "/dev/")):
        return None
    start, _, end = part[0].partition("-")
    try:
        return Mapping(int(start, 16), int(end, 16), int(part[2], 16), int(part[4]), path)
    except ValueError:
        return None


class Memory:
    """Cached reads of one process, all of them within a deadline and a number of bytes.

    What is cached is as old as its first use: `forget` before reading the same place again.
    """

    def __init__(self, source: Source, deadline: float, *, max_bytes: int = MAX_TOTAL, clock: Callable[[], float] = time.monotonic) -> None:
        self._source, self._deadline, self._left, self._clock = source, deadline, max_bytes, clock
        self.reads = 0
        self._whole: dict[int, bytes] = {}
        self._partial: dict[int, tuple[int, bytes]] = {}
        self._fresh: dict[int, bytes] = {}
        self.mappings: Sequence[Mapping] = source.mappings()
        self._starts = [m.start for m in self.mappings]

    def forget(self) -> None:
        """Drop what is cached; the next reads see the process as it is then."""
        self._whole.clear()
        self._partial.clear()

    def check(self) -> None:
        """Raises Spent when the deadline has passed."""
        if self._clock() > self._deadline:
            raise Spent("deadline")

    def mapping(self, address: int) -> Mapping | None:
        """The mapping that holds an address."""
        i = bisect.bisect_right(self._starts, address) - 1
        return self.mappings[i] if i >= 0 and address < self.mappings[i].end else None

    def look_again(self) -> None:
        """From now on `is_still` compares with what stands there from this moment on."""
        self._fresh.clear()

    def is_still(self, address: int, raw: bytes) -> bool:
        """Do these bytes still stand there? Past the cache of what was read before."""
        offset = address & (PAGE - 1)
        page = self._fresh.get(address >> 12)
        if page is None:
            page = self._fresh[address >> 12] = self._fetch(PAGE, address - offset)
        if offset + len(raw) <= PAGE:
            return page.startswith(raw, offset)
        return self._fetch(len(raw), address) == raw

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes."""
        if address <= 0 or not 0 <= size <= MAX_READ:
            raise BadRead(hex(address))
        offset = address & (CHUNK - 1)
        whole = self._whole.get(address // CHUNK)
        if whole is not None and offset + size <= CHUNK:
            return whole[offset : offset + size]
        pieces, end = [], address + size
        while address < end:
            low, data = self._chunk(address)
            piece = data[address - low : end - low]
            pieces.append(piece)
            address += len(piece)
        return b"".join(pieces)

    def unpack(self, layout: struct.Struct, address: int) -> tuple[Any, ...]:
        """A structure's fields at an address."""
        whole = self._whole.get(address >> 15)
        offset = address & (CHUNK - 1)
        if whole is not None and offset + layout.size <= CHUNK:
            return layout.unpack_from(whole, offset)
        return layout.unpack(self.read(address, layout.size))

    def word(self, address: int) -> int:
        """An unsigned 8-byte word."""
        whole = self._whole.get(address >> 15)
        offset = address & (CHUNK - 1)
        if whole is not None and offset <= CHUNK - 8:
            value: int = _WORD.unpack_from(whole, offset)[0]
            return value
        return int.from_bytes(self.read(address, 8), "little")

    def words(self, address: int, count: int) -> tuple[int, ...]:
        """`count` unsigned 8-byte words."""
        if not 0 <= count <= MAX_READ // 8:
            raise BadRead("too many words")
        return struct.unpack(f"<{count}Q", self.read(address, 8 * count))

    def text(self, address: int, limit: int = 256) -> str:
        """A C string of at most `limit` bytes."""
        found = b""
        while len(found) < limit:
            at = address + len(found)
            piece = self.read(at, min(64, PAGE - at % PAGE))
            head, zero, _ = piece.partition(b"\0")
            found += head
            if zero:
                return found.decode("utf-8", "replace")
        raise BadRead("unterminated string")

    def _chunk(self, address: int) -> tuple[int, bytes]:
        """(first address, bytes) of a cached block that holds an address."""
        index = address // CHUNK
        low = index * CHUNK
        whole = self._whole.get(index)
        if whole is not None:
            return low, whole
        partial = self._partial.get(index)
        if partial is not None and partial[0] <= address < partial[0] + len(partial[1]):
            return partial
        mapping = self.mapping(address)
        if mapping is None:
            raise BadRead(hex(address))
        start, end = max(low, mapping.start), min(low + CHUNK, mapping.end)
        try:
            data = self._fetch(end - start, start)
        except BadRead:  # a page inside may be beyond its file's end
            data = b""
        if address >= start + len(data):
            start = address & -PAGE
            data = self._fetch(PAGE, start)
            if address >= start + len(data):
                raise BadRead(hex(address))
        if len(data) == CHUNK:
            self._whole[index] = data
        else:
            self._partial[index] = (start, data)
        return start, data

    def _fetch(self, size: int, address: int) -> bytes:
        self.reads += 1
        self._left -= size
        if self._left < 0:
            raise Spent("bytes")
        if not self.reads & 15:
            self.check()
        try:
            return self._source.pread(size, address)
        except (OSError, OverflowError, ValueError) as problem:
            raise BadRead(hex(address)) from problem
