"""The environment of a process as it is now.

``/proc/PID/environ`` is the environment as started. What ``os.environ`` changed since lives where libc's ``environ`` points: found through
the target's own libc file, so that it works for another libc and inside another mount namespace.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, read_bytes, read_text

MAX_VARIABLES = 4096
MAX_VALUE_BYTES = 1 << 15
_LIBC = re.compile(r"^([0-9a-f]+)-\S+ \S+ 00000000 (\S+) (\d+)\s+(/\S*/(?:libc\.so\.6|libc-2[\d.]*\.so))$", re.MULTILINE)


def read_environment_now(pid: int, proc: Path = PROC) -> list[tuple[str, str]] | None:
    """Variables as they are now; None when memory or libc cannot be read (another door, musl, a process without libc).

    The target is not stopped: a value that changes while it is read may come out as the old or the new one.
    """
    maps = read_text(proc / str(pid) / "maps", 8 << 20)
    found = _LIBC.search(maps) if maps else None
    if found is None:
        return None
    offset = _environ_offset(str(proc / str(pid) / "root") + found[4], found[2], int(found[3]))
    if offset is None:
        return None
    try:
        with (proc / str(pid) / "mem").open("rb", buffering=0) as memory:
            return _read_strings(memory, int(found[1], 16) + offset)
    except (OSError, ValueError, struct.error, OverflowError):
        return None


def _read_strings(memory, address: int) -> list[tuple[str, str]]:  # type: ignore[no-untyped-def]
    def read(at: int, size: int) -> bytes:
        memory.seek(at)
        return bytes(memory.read(size))

    (pointer,) = struct.unpack("<Q", read(address, 8))
    pairs = []
    for i in range(MAX_VARIABLES):
        (text,) = struct.unpack("<Q", read(pointer + 8 * i, 8))
        if text == 0:
            break
        value = b""
        while b"\0" not in value and len(value) < MAX_VALUE_BYTES:
            at = text + len(value)
            value += read(at, 4096 - (at & 4095))  # never over the end of a page
        name, equals, content = value.split(b"\0", 1)[0].partition(b"=")
        if equals:
            pairs.append((name.decode("utf-8", "replace"), content.decode("utf-8", "replace")))
    return pairs


@lru_cache(maxsize=32)
def _environ_offset(path: str, device: str, inode: int) -> int | None:
    """Offset of the symbol ``environ`` in a libc file, from its dynamic symbol table; `device` and `inode` are part of the cache key."""
    data = read_bytes(Path(path), 1 << 25)
    if data is None or data[:5] != b"\x7fELF\x02":
        return None
    try:
        sections, size, count = struct.unpack_from("<Q", data, 0x28)[0], *struct.unpack_from("<HH", data, 0x3A)
        for i in range(count):
            kind, _, _, at, length, link = struct.unpack_from("<IQQQQI", data, sections + i * size + 4)
            if kind != 11:  # SHT_DYNSYM
                continue
            names = struct.unpack_from("<Q", data, sections + link * size + 24)[0]
            for symbol in range(at, at + length, 24):
                name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", data, symbol)
                end = data.index(b"\0", names + name)
                if data[names + name : end] in (b"environ", b"__environ") and value:
                    return int(value)
    except (struct.error, ValueError, IndexError):
        return None
    return None
