"""Ray's tables and the counts of its workers, at the start and at the end of the window."""

from __future__ import annotations

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

        thread = threading.Thread(target=count, daemon=True, name="counts")
        thread.start()
        return thread

    def read_again(self, first: RayState, answered: Collection[str], without_agent: Collection[str]) -> tuple[RayState, tuple[CoreWorker, ...]]:
        """Tables and counts at the end of the window; the first ones when the second read fails.

        `answered` are the ids of the nodes whose facts have come, `without_agent` of those that were asked in other ways.
        """
        try:
            state, again = read_ray_state(self._address, deadline_s=self._left(self._call_s, 0.5))
        except RayRlDebugError as e:
            self.gaps.append(Gap(id=gaps.RAY_TABLES, where="cluster", what="tables at the end of the window", reason=str(e)))
            return first, () if self._has_counts_only else self.before
        self.gaps += (g for g in again if g not in self.gaps)
        alive = [n for n in state.nodes if n.alive]
        raylets = look_at_raylets(alive, deadline_s=self._left(4.0, 0.5))
        names = unique_names(alive)
        for node_id, why in raylets.silent.items():
            if why is not None and node_id in answered and node_id not in without_agent:
                self.gaps.append(Gap(id=gaps.RAYLET_SILENT, where=names[node_id], what="an answer of its raylet", reason=why))
        gone = {n for n, why in raylets.silent.items() if why is not None and n not in answered}
        after, mute = read_core_workers(state, deadline_s=self._left(2.0), skip_nodes=gone, told=raylets.workers)
        known = {"cluster", *(f"pid {w.pid}" for w in first.workers)}
        self.gaps += (g for g in mute if g.where in known)  # a worker that came and went in between is nobody's business
        return msgspec.structs.replace(state, object_store=raylets.stores), finish_core_workers(self.before, after)

    def _left(self, most: float, share: float = 1.0) -> float:
        return max(0.3, min(most, (self._deadline - time.monotonic()) * share))
