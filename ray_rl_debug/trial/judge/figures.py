"""A trial in numbers: latencies, throughput against concurrency, rewards."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from ray_rl_debug.model.trial import Episode, Facts, Figures, Rewards

ENOUGH = 0.9
"""Part of the best throughput that counts as having reached it."""
LEVELS = ("group", "level", "batch")


def figures(facts: Facts) -> tuple[Figures, ...]:
    """One row per stage."""
    rows = []
    for stage in facts.stages:
        mine = [e for e in facts.episodes if e.stage == stage.number]
        good = sorted(e.took_s for e in mine if e.took_s is not None and e.error is None and not e.was_cancelled)
        rows.append(
            Figures(
                name=stage.name,
                concurrency=stage.concurrency,
                episodes=stage.episodes,
                done=len(good),
                failed=sum(e.error is not None for e in mine),
                per_s=len(good) / stage.took_s if stage.took_s and good else None,
                p50_s=quantile(good, 0.5),
                p90_s=quantile(good, 0.9),
                p99_s=quantile(good, 0.99),
                engine_peak=stage.engine_peak,
            )
        )
    return tuple(rows)


def quantile(ordered: Sequence[float], part: float) -> float | None:
    """Nearest rank: a value that was measured; None of nothing."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else None


def knee(rows: Sequence[Figures]) -> int | None:
    """The least concurrency with nine tenths of the best throughput, where higher ones were tried too; None: throughput still grows, or unknown."""
    best: dict[int, float] = {}
    for row in rows:
        if row.name in LEVELS and row.per_s is not None and not row.failed:
            best[row.concurrency] = max(best.get(row.concurrency, 0.0), row.per_s)
    if len(best) < 3:
        return None
    enough = min(c for c, per_s in best.items() if per_s >= ENOUGH * max(best.values()))
    return enough if enough < max(best) else None


def rewards(episodes: Sequence[Episode]) -> Rewards | None:
    """Over all episodes that gave one; None where none did."""
    values = [e.reward for e in episodes if e.reward is not None]
    if not values:
        return None
    groups: dict[tuple[int, int], list[float]] = defaultdict(list)
    for e in episodes:
        if e.reward is not None:
            groups[(e.stage, e.group)].append(e.reward)
    several = [g for g in groups.values() if len(g) > 1]
    return Rewards(
        count=len(values),
        mean=statistics.fmean(values),
        deviation=statistics.pstdev(values),
        least=min(values),
        most=max(values),
        groups=len(several),
        equal_groups=sum(min(g) == max(g) for g in several),
        within=statistics.fmean(statistics.pstdev(g) for g in several) if several else None,
    )
