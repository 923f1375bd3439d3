"""The environment of a process as it is now.

``/proc/PID/environ`` is the environment as started. What ``os.environ`` changed since lives where ``environ`` points. The symbol is found through
the target's own files, so that it works for another libc and inside another mount namespace: in the program itself where the linker gave it a copy
(Debian's python is linked so), else in libc.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.foreign_text import as_text

MAX_VARIABLES = 4096
MAX_VALUE_BYTES = 1 << 15
_START = re.compile(r"^([0-9a-f]+)-\S+ \S+ 00000000 (\S+) (\d+)\s+(/.*)$", re.MULTILINE)
_LIBC = re.compile(r"/(?:libc\.so\.6|libc-2[\d.]*\.so)$")
_EXECUTABLE = 2
_SYMBOLS = 11
"""ELF: ``ET_EXEC``, a program that lies where its file says; ``SHT_DYNSYM``."""


def read_environment_now(pid: int, proc: Path = PROC) -> list[tuple[str, str]] | None:
    """Variables as they are now; None when memory or libc cannot be read (another door, musl, a process without libc).

    The target is not stopped: a value that changes while it is read may come out as the old or the new one.
    """
    try:
        address = next(_find_environ(pid, proc), None)
        if address is None:
            return None
        with (proc / str(pid) / "mem").open("rb", buffering=0) as memory:
            return _read_strings(memory, address)
    except (OSError, ValueError, struct.error, OverflowError):
        return None


def _find_environ(pid: int, proc: Path) -> Iterator[int]:
    """Addresses of ``environ`` in the target, the one that counts first."""
    program = os.readlink(proc / str(pid) / "exe")
    mapped = {m[4]: m for m in reversed(list(_START.finditer(read_text(proc / str(pid) / "maps", 8 << 20) or "")))}
    for path in (program, *(path for path in mapped if _LIBC.search(path))):
        found = mapped.get(path)
        offset = _environ_offset(str(proc / str(pid) / "root") + path, found[2], int(found[3])) if found else None
        if found is not None and offset is not None:
            value, is_absolute = offset
            yield value if is_absolute else int(found[1], 16) + value


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
            pairs.append((as_text(name), as_text(content)))
    return pairs


@lru_cache(maxsize=32)
def _environ_offset(path: str, device: str, inode: int) -> tuple[int, bool] | None:
    """The symbol ``environ`` that an ELF file defines and whether it is an address as it stands; `device` and `inode` are part of the cache key."""
    try:
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _find_symbol(data) if data[:5] == b"\x7fELF\x02" else None
    except (OSError, struct.error, ValueError, IndexError):
        return None


def _find_symbol(data: mmap.mmap) -> tuple[int, bool] | None:
    kind_of_file = struct.unpack_from("<H", data, 0x10)[0]
    sections, size, count = struct.unpack_from("<Q", data, 0x28)[0], *struct.unpack_from("<HH", data, 0x3A)
    for i in range(count):
        kind, _, _, at, length, link = struct.unpack_from("<IQQQQI", data, sections + i * size + 4)
        if kind != _SYMBOLS:
            continue
        names = struct.unpack_from("<Q", data, sections + link * size + 24)[0]
        for symbol in range(at, at + length, 24):
            name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, symbol)
            if section and value and data[names + name : data.find(b"\0", names + name)] in (b"environ", b"__environ"):
                return int(value), kind_of_file == _EXECUTABLE
    return None
