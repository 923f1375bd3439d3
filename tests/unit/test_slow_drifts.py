"""Drifts so slow, or values so few, that no test of the noise is sure: they are told as possible, with their step, and not as good."""

from __future__ import annotations

import made_runs
import numpy as np
import pytest

from ray_rl_debug.metrics.judge import judge
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.thresholds import read_thresholds
from ray_rl_debug.model.report import Certainty

pytest.importorskip("scipy", reason="pip install 'ray-rl-debug[metrics]'")
LIMITS = read_thresholds(())
TEST = "val-core/gsm8k/acc/mean@1"
KINDS = (*made_runs.KINDS, "walk")


def found(columns: made_runs.Columns, rule: str, metric: str | None = None) -> list[Judgement]:
    report = judge(made_runs.as_run(columns), LIMITS)
    return [f for f in report.findings if f.id == rule and metric in (None, f.metric)]


def every_ten(columns: made_runs.Columns, values: np.ndarray) -> None:
    """As many tests as there are values, one every ten steps."""
    columns[TEST][:] = np.nan
    columns[TEST][9 : 10 * len(values) : 10] = values


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_a_step_that_takes_ever_longer(kind: str, seed: int) -> None:
    columns = made_runs.healthy(seed, kind, 120)
    columns["timing_s/step"][50:] *= 1 + np.arange(70) / 70
    told = found(columns, "RRD719")
    assert len(told) == 1
    first = told[0].first_step
    assert first is not None
    assert 40 <= first <= 65


@pytest.mark.parametrize("seed", range(3))
def test_a_test_reward_that_falls_slowly(seed: int) -> None:
    columns = made_runs.healthy(seed, "plain", 160)
    g = np.random.default_rng(seed)
    every_ten(columns, 0.6 - 0.012 * np.arange(16) + g.normal(0, 0.01, 16))
    told = found(columns, "RRD707", TEST)
    assert [f.certainty for f in told] == [Certainty.POSSIBLE]
    assert "16 values" in told[0].evidence[0]
    assert [f.certainty for f in found(columns, "RRD709")] == [Certainty.POSSIBLE]


@pytest.mark.parametrize("seed", range(6))
def test_few_tests_around_a_course_are_no_drift(seed: int) -> None:
    columns = made_runs.healthy(seed, "plain", 160)
    train = columns["critic/score/mean"]
    every_ten(columns, train[9:160:10] - 0.03 + np.random.default_rng(seed).normal(0, 0.02, 16))
    assert found(columns, "RRD707") == found(columns, "RRD709") == []


def test_seven_tests_say_nothing() -> None:
    columns = made_runs.healthy(1, "plain", 80)
    every_ten(columns, 0.6 - 0.05 * np.arange(7))
    assert found(columns, "RRD707", TEST) == []
