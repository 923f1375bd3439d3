"""Python objects in another process's memory: types, strings, numbers, containers, instance attributes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from ray_rl_debug.collect.async_tasks.layout import Layout
from ray_rl_debug.collect.async_tasks.memory import BadRead, Memory

IS_TYPE, IS_DICT, IS_STRING, IS_BYTES, IS_TUPLE, IS_LIST, IS_INT = 1 << 31, 1 << 29, 1 << 28, 1 << 27, 1 << 26, 1 << 25, 1 << 24
MANAGED_DICT, INLINE_VALUES = 1 << 4, 1 << 2
MAX_TEXT = 512
MAX_ENTRIES = 1 << 18
"""Of a dict: the table of modules of the largest programs has some ten thousand."""
MAX_SET = 1 << 20
MAX_BASES, MAX_MEMBERS, MAX_DIGITS = 64, 64, 8
_STRING_HEAD = struct.Struct("<8xQq8xI")
_SIZED_HEAD = struct.Struct("<8xQq")
_DIGITS = 30


class PyType:
    """What we need of a type object."""

    __slots__ = ("address", "bases", "basicsize", "dictoffset", "flags", "members", "name")

    def __init__(self, address: int, name: str, basicsize: int, flags: int, dictoffset: int, bases: tuple[int, ...]) -> None:
        self.address, self.name, self.basicsize, self.flags, self.dictoffset, self.bases = address, name, basicsize, flags, dictoffset, bases
        self.members: dict[str, int] | None = None


class Objects:
    """Decodes objects of one interpreter. Every method raises BadRead where memory makes no sense."""

    def __init__(self, memory: Memory, layout: Layout) -> None:
        self.memory, self.layout = memory, layout
        self._types: dict[int, PyType | None] = {}
        self._strings: dict[int, str] = {}
        self._key_names: dict[int, list[str | None]] = {}
        self._type = struct.Struct("<8xQ8xQq128xQ64xQ8xQ24xq")

    def forget(self) -> None:
        """Drop all that was decoded except types, which live as long as what has them."""
        self._strings.clear()
        self._key_names.clear()
        self._types = {address: kind for address, kind in self._types.items() if kind is not None}

    # types

    def type_at(self, address: int) -> PyType | None:
        """The type object at an address; None if there is none."""
        try:
            return self._types[address]
        except KeyError:
            pass
        try:
            found = self._read_type(address) if address and not address & 7 else None
        except BadRead:
            found = None
        self._types[address] = found
        return found

    def _read_type(self, address: int) -> PyType | None:
        memory = self.memory
        meta, name, basicsize, flags, _, base, dictoffset = memory.unpack(self._type, address)
        if not memory.word(meta + self.layout.type_flags) & IS_TYPE or not 0 < basicsize < 1 << 20:
            return None
        bases = [address]
        while base and len(bases) < MAX_BASES:
            bases.append(base)
            base = memory.word(base + self.layout.type_base)
        return PyType(address, memory.text(name).rpartition(".")[2], basicsize, flags, dictoffset, tuple(bases))

    def type_of(self, address: int) -> PyType | None:
        """The type of the object at an address; None where there is no object."""
        if not address or address & 7:
            return None
        try:
            return self.type_at(self.memory.word(address + 8))
        except BadRead:
            return None

    def type_name(self, address: int) -> str:
        found = self.type_of(address)
        return found.name if found else ""

    def member(self, kind: PyType, name: str) -> int | None:
        """Offset of a member that a type written in C, or ``__slots__``, publishes."""
        if kind.members is None:
            kind.members = {}
            for base in kind.bases:
                try:
                    at = self.memory.word(base + self.layout.type_members)
                    for i in range(MAX_MEMBERS if at else 0):
                        text, _, offset = self.memory.words(at + 40 * i, 3)
                        if not text:
                            break
                        kind.members.setdefault(self.memory.text(text), offset)
                except BadRead:
                    continue
        return kind.members.get(name)

    def defines(self, kind: PyType, name: str) -> bool:
        """Does a class written in Python, or one of its first bases, have this in its body?"""
        tables = (self.memory.word(base + self.layout.type_dict) for base in kind.bases)
        return any(name in self.lookup(table, [name]) for table in tables if table)

    # scalars

    def string(self, address: int) -> str:
        """A str, cut to `MAX_TEXT` characters, without control characters."""
        try:
            return self._strings[address]
        except KeyError:
            pass
        if not address or address & 7:
            raise BadRead("no str")
        type_address, length, state = self.memory.unpack(_STRING_HEAD, address)
        kind = self.type_at(type_address)
        width, compact = state >> 2 & 7, state >> 5 & 1
        if kind is None or not kind.flags & IS_STRING or length < 0 or width not in (1, 2, 4) or not compact:
            raise BadRead("no str")
        start = address + (self.layout.string_ascii if state >> 6 & 1 else self.layout.string_compact)
        data = self.memory.read(start, min(length, MAX_TEXT) * width)
        text = data.decode({1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[width], "replace")
        if not text.isprintable():
            text = "".join(c if c.isprintable() else "?" for c in text)
        self._strings[address] = text
        return text

    def bytes_at(self, address: int, limit: int = 1 << 20) -> bytes:
        """A bytes object of at most `limit` bytes."""
        type_address, length = self.memory.unpack(_SIZED_HEAD, address)
        kind = self.type_at(type_address)
        if kind is None or not kind.flags & IS_BYTES or not 0 <= length <= limit:
            raise BadRead("no bytes")
        return self.memory.read(address + 32, length)

    def number(self, address: int) -> int | float | None:
        """An int, float or bool; None for None."""
        kind = self.type_of(address)
        if kind is not None and kind.name == "NoneType":
            return None
        if kind is not None and kind.name == "float":
            (value,) = struct.unpack("<d", self.memory.read(address + 16, 8))
            return float(value)
        if kind is None or not kind.flags & IS_INT:
            raise BadRead("no number")
        (tag,) = struct.unpack("<q", self.memory.read(address + 16, 8))
        if self.layout.version >= (3, 12):
            count, is_negative = tag >> 3, tag & 3 == 2
        else:
            count, is_negative = abs(tag), tag < 0
        if not 0 <= count <= MAX_DIGITS:
            raise BadRead("odd int")
        digits = struct.unpack(f"<{count}I", self.memory.read(address + 24, 4 * count))
        total: int = sum(digit << _DIGITS * i for i, digit in enumerate(digits))
        return -total if is_negative else total

    # containers

    def length(self, address: int) -> int | None:
        """Items of a list, tuple or deque."""
        if not address or address & 7:
            return None
        type_address, length = self.memory.unpack(_SIZED_HEAD, address)
        kind = self.type_at(type_address)
        if kind is None or not (kind.flags & (IS_LIST | IS_TUPLE) or kind.name == "deque") or not 0 <= length < 1 << 40:
            return None
        return int(length)

    def sequence(self, address: int, limit: int = 4096) -> tuple[int, ...]:
        """The first items of a list or tuple."""
        type_address, length = self.memory.unpack(_SIZED_HEAD, address)
        kind = self.type_at(type_address)
        if kind is None or not kind.flags & (IS_LIST | IS_TUPLE) or length < 0:
            raise BadRead("no list or tuple")
        start = address + self.layout.tuple_items if kind.flags & IS_TUPLE else self.memory.word(address + 24)
        return self.memory.words(start, min(length, limit)) if length else ()

    def set_items(self, address: int) -> tuple[list[int], bool]:
        """Items of a set, and whether that is all of them."""
        mask, table = self.memory.words(address + 32, 2)
        if mask & (mask + 1) or mask >= 1 << 40:
            raise BadRead("no set")
        words = self.memory.words(table, 2 * min(mask + 1, MAX_SET))
        return [item for item, hashed in zip(words[::2], words[1::2], strict=True) if item and hashed != (1 << 64) - 1], mask < MAX_SET

    def dict_items(self, address: int) -> list[tuple[int, int]]:
        """(key, value) addresses of a dict."""
        kind = self.type_of(address)
        if kind is None or not kind.flags & IS_DICT:
            raise BadRead("no dict")
        keys, values = self.memory.words(address + 32, 2)
        entry_keys, entry_values = self._entries(keys)
        if values:
            entry_values = self.memory.words(values + (8 if self.layout.version >= (3, 13) else 0), len(entry_keys))
        return [(key, value) for key, value in zip(entry_keys, entry_values, strict=True) if value]

    def _entries(self, keys: int) -> tuple[Sequence[int], Sequence[int]]:
        """Keys and values of a table of dict keys, in order of insertion."""
        memory = self.memory
        if self.layout.version == (3, 10):
            size, count = memory.word(keys + 8), memory.word(keys + 32)
            width, general = 1 if size <= 0xFF else 2 if size <= 0xFFFF else 4, True
            start = keys + 40 + size * width
        else:
            log_bytes, kind, count = memory.read(keys + 9, 1)[0], memory.read(keys + 10, 1)[0], memory.word(keys + 24)
            start, general = keys + 32 + (1 << min(log_bytes, 40)), kind == 0
        if count > MAX_ENTRIES:
            raise BadRead("odd dict")
        step = 3 if general else 2
        words = memory.words(start, step * count)
        return words[step - 2 :: step], words[step - 1 :: step]

    def lookup(self, address: int, names: Iterable[str]) -> dict[str, int]:
        """Those values of a dict that stand under these strings."""
        wanted = set(names)
        lengths, found = {len(name) for name in wanted}, {}
        unpack = self.memory.unpack
        for key, value in self.dict_items(address):
            try:
                if unpack(_STRING_HEAD, key)[1] in lengths and (text := self.string(key)) in wanted:
                    found[text] = value
            except BadRead:
                continue
        return found

    # attributes

    def attributes(self, address: int) -> dict[str, int]:
        """An object's own ``__dict__``, wherever this version keeps it: name to address."""
        kind = self.type_of(address)
        if kind is None:
            raise BadRead("no object")
        memory, version = self.memory, self.layout.version
        values = table = 0
        if version >= (3, 11) and kind.flags & MANAGED_DICT:
            table = memory.word(address - 24)
            if version == (3, 11):
                values = memory.word(address - 32)
            elif version == (3, 12):
                if table & 1:
                    table, values = 0, table + 1
            elif not table and kind.flags & INLINE_VALUES:
                inline = address + kind.basicsize
                values = inline + 8 if memory.read(inline + 3, 1)[0] else 0
        elif kind.dictoffset > 0:
            table = memory.word(address + kind.dictoffset)
        if values:
            names = self._names(memory.word(kind.address + self.layout.type_cached_keys))
            return {n: v for n, v in zip(names, memory.words(values, len(names)), strict=True) if n is not None and v}
        found = {}
        for key, value in self.dict_items(table) if table else ():
            try:
                found[self.string(key)] = value
            except BadRead:
                continue
        return found

    def _names(self, keys: int) -> list[str | None]:
        """Names of the attributes that the instances of one class share."""
        found = self._key_names.get(keys)
        if found is None:
            found = []
            for key in self._entries(keys)[0]:
                try:
                    found.append(self.string(key))
                except BadRead:
                    found.append(None)
            self._key_names[keys] = found
        return found

    def attribute(self, address: int, *names: str) -> int:
        """The first of these attributes that an object has, in its ``__dict__`` or its slots; 0 where it has none."""
        kind = self.type_of(address)
        if kind is None:
            return 0
        own = self.attributes(address) if kind.dictoffset or kind.flags & MANAGED_DICT else {}
        for name in names:
            if value := own.get(name, 0):
                return value
            offset = self.member(kind, name)
            if offset is not None and 16 <= offset <= kind.basicsize - 8 and (value := self.memory.word(address + offset)):
                return value
        return 0
