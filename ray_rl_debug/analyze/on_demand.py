"""A mapping of which most values are never asked for: each is found when somebody asks, once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

Known = TypeVar("Known")


class OnDemand(Mapping[str, Known]):
    """What is known of some names, and what a pure function tells of others."""

    def __init__(self, known: Mapping[str, Known], others: Collection[str], find: Callable[[str], Known | None]) -> None:
        """`find` is asked of `others` that are not known; where it gives None, the name is not in the mapping."""
        self._known = dict(known)
        self._others = others
        self._find = find

    def __getitem__(self, name: str) -> Known:
        found = self._known.get(name)
        if found is not None:
            return found
        found = self._find(name) if name in self._others else None
        if found is None:
            raise KeyError(name)
        self._known[name] = found
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """The same without an error, and so without the price of one."""
        found = self._known.get(name)
        if found is None and name in self._others and (found := self._find(name)) is not None:
            self._known[name] = found
        return default if found is None else found

    def __iter__(self) -> Iterator[str]:
        known = tuple(self._known)
        yield from known
        yield from (name for name in self._others if name not in known and name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
