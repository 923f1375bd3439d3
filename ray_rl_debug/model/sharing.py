"""Equal values once: the facts of a thousand nodes name the same functions, files and settings over and over.

Half of the memory of decoded facts is text, of which a twentieth is different. A decoder makes each string anew; here equal strings, and equal small
facts, become one object. Text is changed on the way (what must not be shown, what is no text), so that nobody has to go through all of it again.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from msgspec.structs import force_setattr

from ray_rl_debug.model.snapshot import AwaitFrame, Frame, Local, OpenFile, ThreadSample

KEPT_TEXTS = 1 << 16
"""Different strings that are remembered. What recurs comes with the first nodes; ports and addresses are new with each."""
LONG = 400
"""Longer strings are hardly ever equal."""
_SMALL = frozenset({AwaitFrame, Frame, Local, OpenFile, ThreadSample})
"""Facts that recur whole."""
_NUMBERS = frozenset({int, bool, type(None)})

T = TypeVar("T")


class Sharing:
    """What was seen so far. Give each value to it once, fresh from its decoder: structures are changed in place."""

    def __init__(self, change: Callable[[str], str]) -> None:
        self._change = change
        self._texts: dict[str, str] = {}
        self._floats: dict[float, float] = {}
        self._facts: dict[Any, Any] = {}
        self._fields: dict[type, tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]] = {}

    def take(self, value: T) -> T:
        """The same value; nobody else may hold it or a part of it."""
        taken: T = self._apply(value)
        self._facts.clear()  # pids, ports and times differ between nodes: what is equal is equal within one
        return taken

    def _text(self, value: str) -> str:
        known = self._texts.get(value)
        if known is None:
            known = self._change(value)
            if len(value) <= LONG and len(self._texts) < KEPT_TEXTS:
                self._texts[value] = known if known != value else value
        return known

    def _apply(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return self._text(value)
        if kind in _NUMBERS:
            return value
        if kind is float:
            return self._floats.setdefault(value, value) if len(self._floats) < KEPT_TEXTS else value
        if kind is tuple:
            return self._row(value)
        if isinstance(value, msgspec.Struct):
            return self._struct(value, kind)
        if kind is dict:
            return self._mapping(value)
        return value

    def _row(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if not value or type(value[0]) is int:  # stacks are rows of numbers
            return value
        if type(value[0]) not in _SMALL:
            return tuple([self._apply(v) for v in value])
        # a thread that stands still is the same in each sample, and so are all threads of its process
        known: tuple[Any, ...] | None = self._facts.get(value)
        if known is None:
            known = self._facts[value] = tuple([self._struct(v, type(v)) for v in value])
        return known

    def _mapping(self, value: dict[Any, Any]) -> dict[Any, Any]:
        try:
            key = tuple(value.items())
            known: dict[Any, Any] | None = self._facts.get(key)
        except TypeError:  # values that are no text
            return {self._apply(k): self._apply(v) for k, v in value.items()}
        if known is None:
            known = self._facts[key] = {self._apply(k): self._apply(v) for k, v in key}
        return known

    def _struct(self, value: Any, kind: type) -> Any:
        if kind in _SMALL:
            known = self._facts.get(value)
            if known is not None:
                return known
        names, get = self._fields.get(kind) or self._fields_of(kind)
        texts = self._texts
        for name, before in zip(names, get(value), strict=True):
            if not before:
                continue
            # nearly all is text that was met before: not worth a call
            after = (texts.get(before) or self._text(before)) if type(before) is str else self._apply(before)
            if after is not before:
                force_setattr(value, name, after)
        return self._facts.setdefault(value, value) if kind in _SMALL else value

    def _fields_of(self, kind: type) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
        """Fields that may hold more than a number, and how all of them are read at once."""
        plain = {"int", "bool", "int | None", "bool | None"}
        names = tuple(f.name for f in msgspec.structs.fields(kind) if _words(f.type) not in plain)
        got: Callable[[Any], Any] = attrgetter(*names) if names else lambda _: ()
        one: Callable[[Any], tuple[Any, ...]] = (lambda v: (got(v),)) if len(names) == 1 else got
        self._fields[kind] = (names, one)
        return self._fields[kind]


def _words(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)
