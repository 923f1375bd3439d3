"""The tests of trend and change: how often they are wrong on noise, and where they see a change."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy", reason="trends need scipy: pip install 'ray-rl-debug[metrics]'")

import made_runs
import numpy as np

from ray_rl_debug.metrics.statistics.changes import find_change, find_variance_change
from ray_rl_debug.metrics.statistics.excursions import last_excursion
from ray_rl_debug.metrics.statistics.noise import Noise, effective_size, most_persistent, without_spikes
from ray_rl_debug.metrics.statistics.trends import trend


def wander(seed: int, n: int, rho: float) -> np.ndarray:
    """AR(1) noise of variance 1."""
    e = np.random.default_rng(seed).normal(size=n + 100)
    for i in range(1, len(e)):
        e[i] = rho * e[i - 1] + np.sqrt(1 - rho * rho) * e[i]
    return e[100:]


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_noise_alone_is_seldom_a_trend(rho: float) -> None:
    """At 5 %, of 200 series; without the correction half of the strongly correlated ones are."""
    wrong = sum(trend(range(100), wander(seed, 100, rho)).p < 0.05 for seed in range(200))
    assert wrong <= 0.12 * 200


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_noise_alone_is_seldom_a_change(rho: float) -> None:
    wrong = sum((c := find_change(wander(seed, 120, rho))) is not None and c.p <= 0.05 for seed in range(40))
    assert wrong <= 0.15 * 40


@pytest.mark.integration
@pytest.mark.parametrize("kind", [0.9, 0.95, 0.98, "walk"])
def test_a_slow_wander_is_seldom_a_change(kind: float | str) -> None:
    """At 0.5 %, of 60 series; a test that estimates the memory from what a change leaves calls 5 to 35 of them one."""
    made = [made_runs.walk(np.random.default_rng(seed), 150) if kind == "walk" else wander(seed, 150, float(kind)) for seed in range(60)]
    assert sum((c := find_change(values)) is not None and c.p <= 0.005 for values in made) <= 2


@pytest.mark.parametrize("rho", [0.9, 0.95, 0.98])
def test_a_step_in_a_slow_wander_is_seen_and_placed(rho: float) -> None:
    """Six of its standard deviations: many times what it moves by from one value to the next."""
    for seed in range(5):
        values = wander(seed, 150, rho)
        values[80:] -= 6
        found = find_change(values)
        assert found is not None
        assert found.p <= 0.005 and found.size < 0
        assert abs(found.position - 80) <= 1


def test_a_trend_is_seen_and_measured() -> None:
    found = trend(range(100), 0.05 * np.arange(100) + wander(1, 100, 0.5))
    assert found.p < 0.001
    assert found.gain_low < 0.05 * 99 < found.gain_high


def test_a_straight_trend_is_no_change() -> None:
    found = find_change(0.1 * np.arange(150) + wander(2, 150, 0.3))
    assert found is not None
    assert found.p > 0.01


@pytest.mark.parametrize("at", [20, 75, 130])
@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_a_step_is_placed(at: int, rho: float) -> None:
    values = wander(3, 150, rho)
    values[at:] += 6
    found = find_change(values)
    assert found is not None
    assert abs(found.position - at) <= 1
    assert found.p == pytest.approx(0.001)
    assert found.width == 1 or rho > 0


def test_a_bend_and_a_slope_are_placed() -> None:
    noise = wander(4, 150, 0.3)
    bend = find_change(noise + 0.5 * np.maximum(0, np.arange(150) - 99))
    slope = find_change(noise + 0.8 * np.clip(np.arange(150) - 59, 0, 15))
    assert bend is not None and slope is not None
    assert abs(bend.position - 100) <= 3 and bend.width is None
    assert abs(slope.position - 60) <= 3 and slope.width is not None and 10 <= slope.width <= 20


def test_a_long_series_is_searched_in_blocks_and_placed_exactly() -> None:
    values = wander(5, 5003, 0.0)
    values[3210:] += 5
    found = find_change(values)
    assert found is not None
    assert abs(found.position - 3210) <= 2


def test_the_place_is_where_ruptures_sees_it() -> None:
    """An independent library, for steps (it has no ramps and no p)."""
    ruptures = pytest.importorskip("ruptures", reason="only an oracle: pip install ruptures")
    for seed in range(10):
        values = wander(seed, 200, 0.0)
        values[70 + seed * 5 :] += 4
        found = find_change(values)
        assert found is not None
        assert abs(found.position - ruptures.Binseg("l2", jump=1).fit(values).predict(1)[0]) <= 1


def test_a_change_of_width_is_placed() -> None:
    g = np.random.default_rng(6)
    values = np.concatenate([g.normal(0, 1, 90), g.normal(0, 5, 60)])
    place, p = find_variance_change(values)
    assert abs(place - 90) <= 3
    assert p < 1e-6
    assert sum(find_variance_change(wander(seed, 100, 0.0))[1] <= 0.05 for seed in range(100)) <= 10


def test_a_spike_before_a_change_of_width_is_not_its_beginning() -> None:
    import made_runs

    at = int(np.random.default_rng(502).integers(60, 140))
    columns = made_runs.healthy(70_002, "spiky", 200)
    made_runs.FAULTS["RRD708"][1](columns, at)
    place, p = find_variance_change(np.diff(columns["critic/score/mean"]))
    assert (abs(place + 1 - at) <= 3, p < 1e-6) == (True, True)


def test_many_ties_do_not_make_a_trend_certain() -> None:
    """Rewards of eight samples are eighths: most pairs are equal or cancel out, and the slope of Theil and Sen is exactly 0."""
    values = np.random.default_rng(3).binomial(8, 0.5, 63) / 8
    found = trend(range(63), values)
    assert found.gain_low < -0.05 and found.gain_high > 0.05


def test_constant_series_have_no_change() -> None:
    assert find_change([1.0] * 50) is None
    assert find_change([1.0, 2.0]) is None
    assert trend(range(10), [1.0] * 10).p == 1.0


def test_the_memory_of_noise_and_what_it_costs() -> None:
    assert most_persistent(wander(7, 2000, 0.0)).rho <= 0.1
    assert 0.7 <= most_persistent(wander(7, 2000, 0.7)).rho <= 0.8
    assert most_persistent(np.cumsum(wander(7, 200, 0.0))).rho == 1.0
    under_noise = most_persistent(wander(7, 2000, 0.97) + wander(8, 2000, 0.0))
    assert under_noise.rho >= 0.93 and under_noise.theta < -0.5, "the independent part is not taken for forgetting"
    assert effective_size(100, Noise(0.0)) == 100
    assert effective_size(100, Noise(0.5)) == pytest.approx(33.3, abs=0.1)
    assert effective_size(100, Noise(1.0)) == 3


def test_single_spikes_go_and_lasting_ones_stay() -> None:
    values = [1.0 + 0.01 * (i % 3) for i in range(60)]
    values[20] = 50.0
    values[40:50] = [9.0] * 10
    calm = without_spikes(values)
    assert calm[20] < 1.1
    assert calm[44] == 9.0


def test_excursions() -> None:
    def beyond(v: float) -> float:
        return v - 1

    assert last_excursion([0.0] * 20, beyond, 5) is None
    found = last_excursion([0.0] * 10 + [2.0] * 10, beyond, 5)
    assert found is not None
    assert (found.first, found.last, found.is_over, found.typical) == (10, 19, False, 2.0)
    over = last_excursion([0.0] * 10 + [2.0] * 10 + [0.0] * 10, beyond, 5)
    assert over is not None
    assert (over.first, over.last, over.is_over) == (10, 19, True)


def test_the_worst_is_farthest_beyond_the_limit_not_from_what_is_usual() -> None:
    values = [0.9, 0.5, 0.95, 1.0] + [0.95] * 16
    found = last_excursion(values, lambda v: v - 0.05, 5)
    assert found is not None
    assert found.worst == 1.0
