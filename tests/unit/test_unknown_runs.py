"""What logs of runs showed that were never seen before: a reward that saturates, several agents, a trainer made at home."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ray_rl_debug.metric_sources.load import load
from ray_rl_debug.metrics.judge import judge
from ray_rl_debug.metrics.model import Judgement, Run, Series, Status
from ray_rl_debug.metrics.quantities import Quantity, find
from ray_rl_debug.metrics.thresholds import read_thresholds

LIMITS = read_thresholds(())


def judged(values: np.ndarray, rule: str) -> Judgement:
    series = Series(name="critic/score/mean", steps=tuple(range(len(values))), values=tuple(values.tolist()))
    report = judge(Run(label="made", series={series.name: series}), LIMITS)
    return next(j for j in (*report.findings, *report.judged) if j.id == rule)


def test_a_reward_that_rises_fast_and_then_slowly_has_left_where_it_began() -> None:
    g, t = np.random.default_rng(8), np.arange(400)
    slow = np.cumsum(g.normal(0, 0.004, 400))
    values = 0.1 + 0.6 * (1 - np.exp(-t / 15)) + slow - np.linspace(0, slow[-1], 400) + g.normal(0, 0.02, 400)
    found = judged(values, "RRD706")
    assert found.status is Status.GOOD
    assert "has left where it began: 0.3" in found.summary


def test_a_reward_that_was_as_high_at_first_has_not() -> None:
    g = np.random.default_rng(9)
    values = 0.4 + np.cumsum(g.normal(0, 0.02, 300))
    values[-60:] = values[:60][::-1]
    assert judged(values, "RRD706").status is not Status.GOOD


def test_what_stands_above_the_agents_sums_them_up() -> None:
    names = [f"collection/{who}reward/episode_reward_mean" for who in ("guard/", "", "scout/")]
    assert find(Quantity.REWARD, names) == ("collection/reward/episode_reward_mean",)


def test_pairs_behind_a_step_in_brackets(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"[step {n}] avg_loss=0.0{n} acc=0.{n}000\nsome answer of the model = 4\n" for n in range(10, 60, 10)))
    run = load([log], {})
    assert {name: series.steps for name, series in run.series.items()} == dict.fromkeys(("avg_loss", "acc"), (10, 20, 30, 40, 50))
    assert find(Quantity.REWARD, run.series) == ("acc",)
