"""Who holds which rollout, as a store of rollouts (Agent-Lightning's) tells."""

from __future__ import annotations

from ray_rl_debug.model.snapshot.fact import Fact


class Runner(Fact, frozen=True, kw_only=True):
    """One row of the store's table of workers: a runner process, anywhere in the cluster. Times are Unix times of the store's clock."""

    worker_id: str
    status: str | None = None
    """``busy``, ``idle`` or ``unknown``."""
    host: str | None = None
    rollout_id: str | None = None
    attempt_id: str | None = None
    heartbeat_time_s: float | None = None
    """From a thread of its own: it goes on while the agent hangs."""
    busy_time_s: float | None = None
    idle_time_s: float | None = None
    dequeue_time_s: float | None = None

    @property
    def times(self) -> tuple[float, ...]:
        """All that are known."""
        return tuple(t for t in (self.heartbeat_time_s, self.busy_time_s, self.idle_time_s, self.dequeue_time_s) if t is not None)
