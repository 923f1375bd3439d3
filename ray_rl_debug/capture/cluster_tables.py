"""Ray's tables and the counts of its workers, at the start and at the end of the window."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection

import msgspec

from ray_rl_debug.cluster.auth import with_token
from ray_rl_debug.cluster.node_choice import unique_names
from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import RayRlDebugError
from ray_rl_debug.model.snapshot import CoreWorker, Gap, RayState
from ray_rl_debug.ray_state import counted_workers, finish_core_workers, is_crowd, look_at_raylets, read_core_workers, read_ray_state
from ray_rl_debug.ray_state.raylets import Raylets


class _Again(msgspec.Struct, frozen=True, kw_only=True):
    """What Ray told at the end of the window."""

    state: RayState
    gaps: tuple[Gap, ...]
    raylets: Raylets
    workers: tuple[CoreWorker, ...]
    mute: tuple[Gap, ...]
    """Of workers that did not answer."""


class _Ahead:
    """A second read that goes on beside others."""

    def __init__(self, answered: frozenset[str], read: Callable[[], _Again | RayRlDebugError]) -> None:
        self.answered = answered
        self._read = read
        self._found: _Again | RayRlDebugError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="tables")
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(Exception):  # what nobody foresaw is met again by whoever needs the facts
            self._found = self._read()

    def finish(self) -> _Again | RayRlDebugError:
        """What was read, when it has been; read now where that failed in a way that nobody foresaw."""
        self._thread.join()
        return self._found if self._found is not None else self._read()


class ClusterTables:
    """The tables of one cluster, all of them before a deadline (monotonic seconds); `call_s` bounds each call."""

    def __init__(self, address: str, *, call_s: float, deadline: float, progress: Callable[[str], None]) -> None:
        self._address, self._call_s, self._deadline, self._progress = address, call_s, deadline, progress
        self.gaps: list[Gap] = []
        self.used_token = False
        """Did Ray ask for a token, and take ours?"""
        self.before: tuple[CoreWorker, ...] = ()
        """The counts at the start."""
        self._has_counts_only = False
        """Of a crowd: `before` tells nothing of what they run and own."""
        self._ahead: _Ahead | None = None

    def read(self) -> RayState:
        """The tables at the start. Raises as `ray_state.read_ray_state`."""

        def told(said: str) -> None:
            self.used_token = True
            self._progress(said)

        state, found = with_token(lambda: read_ray_state(self._address, deadline_s=self._call_s), told)
        self.gaps += found
        return state

    def count_calls(self, state: RayState) -> threading.Thread:
        """Reads the counts at the start, beside the gathering; they stand in `before` when the thread has ended."""

        deadline_s = min(2.0, self._call_s)

        def count() -> None:
            if is_crowd(state, deadline_s=deadline_s):  # a raylet asks its workers on its own node: one call of ours instead of dozens
                told = look_at_raylets([n for n in state.nodes if n.alive], deadline_s=deadline_s).workers
                self._has_counts_only, self.before = True, counted_workers(state, told)
            else:
                self.before, _ = read_core_workers(state, deadline_s=deadline_s)

        self._counting = threading.Thread(target=count, daemon=True, name="counts")
        self._counting.start()
        return self._counting

    def read_ahead(self, answered: Callable[[], Collection[str]]) -> None:
        """Begin to read again, once, while nothing is left to do but to wait for the last nodes. It counts if nobody answers after this.

        `answered` gives the ids of the nodes whose facts have come.
        """
        if self._ahead is None and not self._counting.is_alive():
            ids = frozenset(answered())
            self._ahead = _Ahead(ids, lambda: self._again(ids))

    def read_again(self, first: RayState, answered: Collection[str], without_agent: Collection[str]) -> tuple[RayState, tuple[CoreWorker, ...]]:
        """Tables and counts at the end of the window; the first ones when the second read fails.

        `answered` are the ids of the nodes whose facts have come, `without_agent` of those that were asked in other ways.
        """
        ahead = self._ahead if self._ahead is not None and self._ahead.answered.issuperset(answered) else None
        again = ahead.finish() if ahead is not None else self._again(answered)
        if isinstance(again, RayRlDebugError):
            self.gaps.append(Gap(id=gaps.RAY_TABLES, where="cluster", what="tables at the end of the window", reason=str(again)))
            return first, () if self._has_counts_only else self.before
        self.gaps += (g for g in again.gaps if g not in self.gaps)
        names = unique_names([n for n in again.state.nodes if n.alive])
        for node_id, why in again.raylets.silent.items():
            if why is not None and node_id in answered and node_id not in without_agent:
                self.gaps.append(Gap(id=gaps.RAYLET_SILENT, where=names[node_id], what="an answer of its raylet", reason=why))
        known = {"cluster", *(f"pid {w.pid}" for w in first.workers)}
        self.gaps += (g for g in again.mute if g.where in known)  # a worker that came and went in between is nobody's business
        return msgspec.structs.replace(again.state, object_store=again.raylets.stores), finish_core_workers(self.before, again.workers)

    def _again(self, answered: Collection[str]) -> _Again | RayRlDebugError:
        try:
            state, found = read_ray_state(self._address, deadline_s=self._left(self._call_s, 0.5))
        except RayRlDebugError as e:
            return e
        raylets = look_at_raylets([n for n in state.nodes if n.alive], deadline_s=self._left(4.0, 0.5))
        gone = {n for n, why in raylets.silent.items() if why is not None and n not in answered}
        workers, mute = read_core_workers(state, deadline_s=self._left(2.0), skip_nodes=gone, told=raylets.workers)
        return _Again(state=state, gaps=found, raylets=raylets, workers=workers, mute=mute)

    def _left(self, most: float, share: float = 1.0) -> float:
        return max(0.3, min(most, (self._deadline - time.monotonic()) * share))
