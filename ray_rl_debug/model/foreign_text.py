"""Text from outside: names, paths, titles and logs may hold any bytes. What leaves this process can always be encoded."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

_LONE = re.compile("[\ud800-\udfff]")
"""What Python makes of bytes that are no UTF-8 (``os.fsdecode``), and halves of pairs from broken JSON: no encoder takes them."""

_NUMBERS = frozenset((int, float, bool, type(None)))

T = TypeVar("T")


def as_text(raw: str | bytes) -> str:
    r"""Text that can be encoded: what is no UTF-8 is spelled out (``caf\xe9``), all else is unchanged."""
    if isinstance(raw, bytes):
        return raw.decode("utf-8", "backslashreplace")
    return raw if raw.isascii() else _LONE.sub(_spell, raw)


def _spell(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def map_text(value: T, change: Callable[[str], str]) -> T:
    """`value` with every string in it changed, at any depth; the same object where nothing changes. Enumerations stay as they are."""
    mapped: T = _Mapping(change).apply(value)
    return mapped


class _Mapping:
    def __init__(self, change: Callable[[str], str]) -> None:
        self._change = change
        self._known: dict[str, str] = {}
        """Each string once: a node names the same files and functions thousands of times."""

    def apply(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            if value not in self._known:
                self._known[value] = self._change(value)
            known = self._known[value]
            return value if known == value else known
        if kind in _NUMBERS:
            return value
        if kind is tuple or kind is list:
            if set(map(type, value)) <= _NUMBERS:  # stacks are long rows of them
                return value
            items = [self.apply(v) for v in value]
            return value if all(a is b for a, b in zip(items, value, strict=True)) else kind(items)
        if kind is dict:
            pairs = {self.apply(k): self.apply(v) for k, v in value.items()}
            same = list(pairs) == list(value) and all(a is b for a, b in zip(pairs.values(), value.values(), strict=True))
            return value if same else pairs
        if isinstance(value, msgspec.Struct):
            return self._struct(value)
        return value

    def _struct(self, value: Any) -> Any:
        """As `apply`; text and numbers, which most fields are, cost no call."""
        fields = {}
        known = self._known
        for name in value.__struct_fields__:
            before = getattr(value, name)
            kind = type(before)
            if kind in _NUMBERS:
                continue
            after = known.get(before) if kind is str else None
            if after is None:
                after = self.apply(before)
            if after is not before and (kind is not str or after != before):
                fields[name] = after
        return msgspec.structs.replace(value, **fields) if fields else value
