"""The tables: phases by step, idle time and bubbles, rollout tail, staleness, queues, progress. Expected values are written out."""

from __future__ import annotations

import pytest

from ray_rl_debug.model.timeline_tables import IdleRow, PhaseRow, QueueRow, StalenessRow, TailRow
from ray_rl_debug.timeline import accumulate
from ray_rl_debug.timeline.accumulate import Accumulator
from ray_rl_debug.timeline.model import Batch, Count, Span, Track
from ray_rl_debug.timeline.spans import percentile, union

S = 1_000_000_000


def phases(rank: str, *spans: tuple[float, float | None, str, int], clock: str = "wall", summary: bool = False) -> Batch:
    track = Track(("cluster", "n", "actor", rank, "phase"), clock, rank=rank, is_summary=summary)
    return Batch(track, [Span(int(a * S), None if b is None else int(b * S), p, "phase", (), p, step) for a, b, p, step in spans])


def tables(*batches: Batch, now_s: float | None = None, **more: object):  # type: ignore[no-untyped-def]
    gathered = Accumulator()
    for batch in batches:
        gathered.add(batch)
    return gathered.finish(None if now_s is None else int(now_s * S), **more)  # type: ignore[arg-type]


def test_phase_by_step_names_the_straggler_and_what_it_cost() -> None:
    found = tables(
        phases("actor/0", (0, 4, "update", 1), (10, 14, "update", 2)),
        phases("actor/1", (0, 4, "update", 1), (10, 19, "update", 2)),
        phases("actor/2", (0, 5, "update", 1), (10, 14, "update", 2)),
    )
    assert found.phases == (PhaseRow(1, "update", 3, 4.0, 5.0, "actor/2", 2.0), PhaseRow(2, "update", 3, 4.0, 9.0, "actor/1", 10.0))


def test_an_unfinished_phase_lasts_until_the_run_was_last_seen() -> None:
    found = tables(phases("actor/0", (0, 4, "update", 1)), phases("actor/1", (1, None, "update", 1)), now_s=61)
    assert found.phases == (PhaseRow(1, "update", 2, 4.0, 60.0, "actor/1", 56.0, 1),)


def test_two_stays_in_one_phase_add_up() -> None:
    assert tables(phases("a", (0, 1, "reward", 1), (2, 4, "reward", 1))).phases == (PhaseRow(1, "reward", 1, 3.0, 3.0, "a", 0.0),)


def test_the_runs_own_times_count_only_where_no_ranks_are_known() -> None:
    summary = phases("verl trainer", (0, 9, "update", 1), summary=True)
    assert tables(summary).phases[0].straggler == "verl trainer"
    assert [r.straggler for r in tables(summary, phases("actor/0", (0, 4, "update", 1))).phases] == ["actor/0"]


def test_idle_is_the_rest_of_the_union_and_a_bubble_needs_both_witnesses() -> None:
    gpu = Track(("cluster", "node1", "gpu 3 utilization"), "wall", "counter", unit="%")
    samples = [Count(int(t * S), v) for t, v in ((1, 90.0), (5, 1.0), (6, 80.0), (11, 2.0))]
    found = tables(
        phases("actor/0", (0, 4, "rollout", 1), (2, 3, "reward", 1), (8, 10, "update", 1)),
        Batch(gpu, samples),
        now_s=12,
        gpu_of_rank={"actor/0": ("node1", "3")},
    )
    assert found.idle == (IdleRow("actor/0", 12.0, 0.5, "node1 gpu 3", 4, 0.5),)


def test_times_of_clocks_that_are_apart_are_brought_together_first() -> None:
    found = tables(
        phases("a", (100, 104, "update", 1), clock="wall"),
        phases("a", (0, 2, "update", 1), clock="own"),
        now_s=110,
        to_reference=lambda clock, at: at + (106 * S if clock == "own" else 0),
    )
    assert found.idle == (IdleRow("a", 10.0, 0.4),)
    assert (found.since_progress_s, found.last_progress) == (2.0, "update")


def test_rollout_tail_staleness_and_queues() -> None:
    sessions = [Span(0, k * S, "session", "session") for k in range(1, 101)]
    track = Track(("cluster", "n", "rollout", "rollout/0", "sessions"), kind="async")
    step = Span(0, S, "step 4", "step", (("step", 4), ("staleness_mean", 1.5), ("staleness_max", 3)))
    found = tables(
        *(Batch(track, [s]) for s in sessions),
        Batch(track, [Span(5, None, "session", "session"), Span(6, None, "reward", "rollout")]),
        Batch(Track(("cluster", "steps")), [step]),
        queues={"Trainer.f": [3.0, 1.0, 2.0], "none": []},
    )
    assert found.rollout == (TailRow("reward", 0, None, None, None, 1), TailRow("session", 100, 50.0, 99.0, 49.0, 1))
    assert found.staleness == (StalenessRow(4, 1.5, 3.0, "the trainer's own metric"),)
    assert found.queues == (QueueRow("Trainer.f", 3, 2.0, 3.0, 3.0),)
    assert found.since_progress_s is None  # nobody looked at the run: traces were read


def test_of_very_many_rollouts_every_other_one_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accumulate, "MAX_DURATIONS", 100)
    track = Track(("cluster", "n", "rollout", "rollout/0", "sessions"), kind="async")
    (row,) = tables(Batch(track, [Span(0, k * S, "session", "session") for k in range(1, 10_001)])).rollout
    assert row.count == 10_000
    assert row.p50_s == pytest.approx(5_000, rel=0.03)
    assert row.p99_s == pytest.approx(9_900, rel=0.03)


def test_of_very_long_runs_the_oldest_steps_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accumulate, "MAX_CELLS", 10)
    found = tables(*(phases(f"actor/{r}", *((s, s + 1, "update", s) for s in range(8))) for r in range(4)))
    assert found.steps_left_out >= 5
    assert max(r.step for r in found.phases) == 7


def test_union_and_percentile() -> None:
    assert union([(5, 6), (1, 3), (2, 4), (4, 5)]) == [(1, 6)]
    assert [percentile([1, 2, 3, 4], p) for p in (0, 50, 99, 100)] == [1, 2, 4, 4]
