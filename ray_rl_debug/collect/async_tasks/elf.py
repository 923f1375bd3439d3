"""Exported symbols of a loaded ELF64 image, read from memory alone.

No file is opened: containers, deleted and replaced binaries need no care.
"""

from __future__ import annotations

import re
import struct

from ray_rl_debug.collect.async_tasks.memory import BadRead, Memory

PT_LOAD, PT_DYNAMIC = 1, 2
EM_X86_64, EM_AARCH64 = 62, 183
"""Machines in the ELF header, of which tables hold facts."""
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_GNU_HASH = 4, 5, 6, 0x6FFFFEF5
MAX_HEADERS, MAX_TAGS, MAX_CHAIN, MAX_SYMBOLS, MAX_IMAGES = 64, 256, 4096, 1 << 17, 1000
_PROGRAM_HEADER = struct.Struct("<IIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_INT = struct.Struct("<I")
_PYTHON_LIBRARY = re.compile(r"/libpython3[^/]*$")
_PYTHON_PROGRAM = re.compile(r"/python[\d.]*[^/]*$")


class Image:
    """One loaded program or library, by the address of its ELF header. Raises BadRead when that is none."""

    def __init__(self, memory: Memory, base: int, path: str) -> None:
        self.path = path
        self._memory = memory
        head = memory.read(base, 64)
        if head[:6] != b"\x7fELF\x02\x01":
            raise BadRead("not little-endian ELF64")
        (self.machine,) = struct.unpack_from("<H", head, 18)
        (headers,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        low, dynamic = None, 0
        for i in range(min(count, MAX_HEADERS)):
            kind, _, _, address = memory.unpack(_PROGRAM_HEADER, base + headers + i * size)
            if kind == PT_LOAD and low is None:
                low = address & -4096
            elif kind == PT_DYNAMIC:
                dynamic = address
        if low is None or not dynamic:
            raise BadRead("no dynamic section")
        self._bias = base - low
        self._tags: dict[int, int] = {}
        for i in range(MAX_TAGS):
            tag, value = memory.words(self._bias + dynamic + 16 * i, 2)
            if tag == 0:
                break
            self._tags.setdefault(tag, value)

    def find(self, name: str) -> int | None:
        """Run-time address of an exported symbol."""
        if DT_GNU_HASH in self._tags:
            return self._find_gnu(name)
        if DT_HASH in self._tags:
            (count,) = self._memory.unpack(_INT, self._table(DT_HASH) + 4)
            for i in range(min(count, MAX_SYMBOLS)):
                if i % 256 == 0:
                    self._memory.check()  # what is read again and again from the cache costs time too
                if (at := self._symbol(i, name)) is not None:
                    return at
        return None

    def _find_gnu(self, name: str) -> int | None:
        memory, at = self._memory, self._table(DT_GNU_HASH)
        buckets, first, bloom, _ = struct.unpack("<4I", memory.read(at, 16))
        if not buckets:
            return None
        start = at + 16 + 8 * bloom
        wanted = _gnu_hash(name)
        (i,) = memory.unpack(_INT, start + 4 * (wanted % buckets))
        for _ in range(MAX_CHAIN):
            if i < first:
                break
            (found,) = memory.unpack(_INT, start + 4 * buckets + 4 * (i - first))
            if found | 1 == wanted | 1 and (address := self._symbol(i, name)) is not None:
                return address
            if found & 1:
                break
            i += 1
        return None

    def _symbol(self, index: int, name: str) -> int | None:
        at, _, _, section, value, _ = self._memory.unpack(_SYMBOL, self._table(DT_SYMTAB) + 24 * index)
        if section and self._memory.text(self._table(DT_STRTAB) + at) == name:
            return int(self._bias + value)
        return None

    def _table(self, tag: int) -> int:
        address = self._tags.get(tag, 0)
        if not address:
            raise BadRead("no such table")
        # glibc turns these into run-time addresses, musl leaves them as linked
        return address if address >= self._bias and self._memory.mapping(address) else address + self._bias


def _gnu_hash(name: str) -> int:
    value = 5381
    for c in name.encode():
        value = (value * 33 + c) & 0xFFFFFFFF
    return value


def find_python(memory: Memory) -> Image | None:
    """The image that defines ``_PyRuntime``: libpython, else the program, else any that does (an embedded interpreter)."""
    bases: dict[str, int] = {}
    for mapping in memory.mappings:
        if mapping.offset == 0 and mapping.inode and mapping.path not in bases:
            bases[mapping.path] = mapping.start
    first = next(iter(bases), "")
    likely = [p for p in bases if _PYTHON_LIBRARY.search(p.removesuffix(" (deleted)"))]
    likely += [p for p in bases if p not in likely and (p == first or _PYTHON_PROGRAM.search(p.removesuffix(" (deleted)")))]
    for path in [*likely, *(p for p in bases if p not in likely)][:MAX_IMAGES]:
        memory.check()
        try:
            image = Image(memory, bases[path], path)
            if image.find("_PyRuntime"):
                return image
        except (BadRead, struct.error):
            continue
    return None
