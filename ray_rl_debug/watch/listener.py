"""Who else hears what the companion sees: OpenTelemetry, where it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ray_rl_debug.metrics.model import MetricsReport
from ray_rl_debug.watch.closer_look import Look
from ray_rl_debug.watch.history import Event
from ray_rl_debug.watch.live import RoleLine
from ray_rl_debug.watch.signals import GpuSign


class Listener(Protocol):
    """Hears everything. It never raises and never waits."""

    def progress(self, job: str, roles: Iterable[RoleLine], age_s: float, step: int | None) -> None:
        """The state of one job."""

    def gpus(self, gpus: Mapping[tuple[str, int], GpuSign]) -> None:
        """All GPUs, by node and index."""

    def nodes(self, seen: int, silent: int) -> None:
        """How many nodes were heard in the last reading, and how many are silent."""

    def event(self, job: str, event: Event) -> None:
        """Something that happened."""

    def look(self, job: str, look: Look, event: Event, *, began_s: float) -> None:
        """A closer look that began at a Unix time, and what came of it."""

    def learning(self, report: MetricsReport) -> None:
        """What the metrics of the run say."""

    def forget(self, job: str) -> None:
        """The job has ended."""

    def close(self) -> None:
        """The companion leaves."""
