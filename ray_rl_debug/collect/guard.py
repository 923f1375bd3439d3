"""One collector that fails must not cost the others: its error becomes a gap, counted once per node."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Gap

T = TypeVar("T")


class Guard:
    """Calls collectors and keeps account of those that raised. Safe to use from several threads."""

    def __init__(self) -> None:
        self._failed: dict[tuple[str, str], list[int | None]] = {}
        self._lock = threading.Lock()

    def call(self, what: str, collector: Callable[[], T], otherwise: T, *, pid: int | None = None) -> T:
        """What the collector returns, or `otherwise` when it raises. `what` says what is then missing."""
        try:
            return collector()
        except Exception as e:  # noqa: BLE001 whatever it is, the other facts are worth having
            with self._lock:
                self._failed.setdefault((what, f"{type(e).__name__}: {str(e)[:160]}"), []).append(pid)
            return otherwise

    def gaps(self, node: str) -> tuple[Gap, ...]:
        """One gap per kind of failure."""
        return tuple(_gap(node, what, reason, pids) for (what, reason), pids in self._failed.items())


def _gap(node: str, what: str, reason: str, pids: list[int | None]) -> Gap:
    id_ = gaps.COLLECTOR_FAILED
    remedy: str | None = "please report this: rayrl-debug explain RRD919"
    if reason.startswith(TimeoutError.__name__):
        id_, reason, remedy = gaps.FILE_UNREAD, "no answer in time: a file system or the lock of a process's memory hangs", None
    elif reason.startswith(MemoryError.__name__):
        reason, remedy = "no memory is left for our process", "raise the limit of this shell: ulimit -v unlimited"
    count = len([p for p in pids if p is not None])
    one = pids[0] if len(pids) == 1 else None
    where, what = (node if one is None else f"{node}/{one}"), (what if count < 2 else f"{what} of {count} processes")
    return Gap(id=id_, where=where, what=what, reason=reason, remedy=remedy)
