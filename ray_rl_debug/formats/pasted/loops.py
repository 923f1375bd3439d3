"""A loop of the shell that dumps processes in turn: whose turn it is where a tool says nothing but that it failed."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.formats.dump import Dump


class Loop:
    """The process ids that a loop goes through; none before one came."""

    def __init__(self) -> None:
        self._pids: tuple[int, ...] = ()
        self._from = 0

    def begin(self, pids: tuple[int, ...], shown: int) -> None:
        """It dumps these, when so many dumps were `shown` before."""
        self._pids, self._from = pids, shown

    def __bool__(self) -> bool:
        return bool(self._pids)

    def next(self, dumps: Sequence[Dump], last: Dump | None) -> int | None:
        """The process behind the last that was shown."""
        if last is not None and last.pid in self._pids[:-1]:
            return self._pids[self._pids.index(last.pid) + 1]
        return self._pids[0] if self._pids and len(dumps) == self._from else None
