"""The environment of a process as it is now.

``/proc/PID/environ`` is the environment as started. What ``os.environ`` changed since lives where ``environ`` points. The symbol is found through
the target's own files, so that it works for another libc and inside another mount namespace: in the program itself where the linker gave it a copy
(Debian's python is linked so), else in libc.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from pathlib import Path

from ray_rl_debug.bounded.opening import open_regular
from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.model.foreign_text import as_text

MAX_VARIABLES = 4096
MAX_VALUE_BYTES = 1 << 15
_START = re.compile(r"^([0-9a-f]+)-\S+ \S+ 00000000 (\S+) (\d+)\s+(/.*)$", re.MULTILINE)
_LIBC = re.compile(r"/(?:libc\.so\.6|libc-2[\d.]*\.so)$")
MAX_SECTIONS, MAX_TABLE_BYTES = 4096, 4 << 20
"""A program with all of torch linked in has some hundred thousand symbols; the tables of libc take 100 KB."""
_SECTION, _SYMBOL = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
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
        with open_regular(path, follow=True) as file:
            return find_symbol(lambda at, size: os.pread(file.fileno(), size, at))
    except (OSError, struct.error, ValueError, OverflowError):
        return None


def find_symbol(read: Callable[[int, int], bytes], names: Collection[bytes] = (b"environ", b"__environ")) -> tuple[int, bool] | None:
    """Value of a symbol that an ELF file defines, and whether it is an address as it stands.

    The file is the target's own and may be made to hurt: sizes are bounded, and it is read, not mapped, for one that is cut off while it is
    mapped would kill us.

    Raises:
        struct.error: it is cut off.
    """
    head = read(0, 64)
    if head[:5] != b"\x7fELF\x02":
        return None
    kind_of_file = struct.unpack_from("<H", head, 0x10)[0]
    sections, size, count = struct.unpack_from("<Q", head, 0x28)[0], *struct.unpack_from("<HH", head, 0x3A)
    if size != _SECTION.size or count > MAX_SECTIONS:
        return None
    table = list(_SECTION.iter_unpack(read(sections, size * count)))
    for _, kind, _, _, at, length, link, _, _, _ in table[:MAX_SECTIONS]:
        if kind != _SYMBOLS or link >= len(table):
            continue
        texts = read(table[link][4], min(table[link][5], MAX_TABLE_BYTES))
        symbols = read(at, min(length, MAX_TABLE_BYTES) // _SYMBOL.size * _SYMBOL.size)
        for name, _, _, section, value, _ in _SYMBOL.iter_unpack(symbols[: len(symbols) // _SYMBOL.size * _SYMBOL.size]):
            if section and value and texts[name : name + 16].partition(b"\0")[0] in names:
                return int(value), kind_of_file == _EXECUTABLE
    return None
