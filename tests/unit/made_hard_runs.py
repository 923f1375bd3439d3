"""Healthy runs made from a seed that look odd by design; the columns, and so the faults, are those of `made_runs`.

*curriculum*: GRPO on prompts that become harder in two to four steps, so that the reward falls at each and rises again; a warm-up of the learning
rate; answers may be up to three times as long at the end as at the start, and steps take longer with them; many groups whose rewards are all equal,
now and then a whole batch of them; tests on a set that stays the same, every so many steps only.

*heavy*: rewards without bounds and with heavy tails, gradients and times as well; each metric is logged at steps of its own; single estimates of KL
are a hundred times the usual one.

*long*: 1,500 steps of noise that remembers, with three crashes: each time the run goes back to a checkpoint and repeats steps, on other machines.
The last crash may be so near that the steps it repeats are not all done; what had made some crash was a collapse, or a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from made_runs import Columns

from ray_rl_debug.metric_sources.gathered import Gathered
from ray_rl_debug.metrics.model import Run

KINDS = ("curriculum", "heavy", "long")
TESTED = "val-core/gsm8k/acc/mean@1"
LONG_STEPS = 1500
Told = list[tuple[int, dict[str, float]]]
"""Rows in the order in which the run wrote them: the step, and its metrics."""


def healthy(seed: int, kind: str) -> Columns:
    """Columns of the run that counts: of steps that were repeated, the last time. The index is step - 1, NaN is what was not written."""
    return {"curriculum": _curriculum, "heavy": _heavy, "long": _long}[kind](np.random.default_rng([seed, 100 + KINDS.index(kind)]))


def told(columns: Columns, seed: int, kind: str) -> Run:
    """The run as a reader gives it, with the steps that a crash made it repeat."""
    rows = list(_rows(columns))
    gathered = Gathered("made")
    for step, row in _with_crashes(rows, np.random.default_rng([seed, 200])) if kind == "long" else rows:
        gathered.add_row(step, row)
    return gathered.run()


def _rows(columns: Columns) -> Iterator[tuple[int, dict[str, float]]]:
    for i in range(len(next(iter(columns.values())))):
        yield i + 1, {name: float(values[i]) for name, values in columns.items() if not math.isnan(values[i])}


def _with_crashes(rows: Told, g: np.random.Generator) -> Told:
    """Before each crash some rows of a run that is no more; the last one may have come further than the run is now."""
    written: Told = []
    places = sorted(int(p) for p in g.choice(np.arange(100, len(rows) - 60), 2, replace=False))
    places.append(int(g.integers(len(rows) - 40, len(rows) - 5)))
    begin = 0
    for place in places:
        written += rows[begin:place]
        lost = int(g.integers(3, 45))
        trouble = g.choice(["none", "collapse", "nan"])
        for i, (_, row) in enumerate(rows[place : place + lost] + rows[max(0, place - 40) : place][: max(0, place + lost - len(rows))]):
            other = {name: value * float(np.exp(g.normal(0, 0.05))) for name, value in row.items()}
            if trouble == "collapse":
                other["critic/score/mean"] = row.get("critic/score/mean", 0.5) * 0.9**i
                other["actor/grad_norm"] = row.get("actor/grad_norm", 1.0) * 1.2**i
            if trouble == "nan" and i > lost // 2:
                other["actor/grad_norm"] = math.nan
            written.append((place + 1 + i, other))
        begin = place
    return written + rows[begin:]


class _Noise:
    """Noise of one length."""

    def __init__(self, g: np.random.Generator, n: int, rho: float = 0.0, freedom: float = math.inf) -> None:
        self._g, self._n, self._rho, self._freedom = g, n, rho, freedom

    def __call__(self, size: float) -> np.ndarray:
        e = self._g.normal(0, 1, self._n + 100) if math.isinf(self._freedom) else self._g.standard_t(self._freedom, self._n + 100)
        for i in range(1, self._n + 100):
            e[i] = self._rho * e[i - 1] + math.sqrt(1 - self._rho**2) * e[i]
        return size * e[100:]

    def around(self, level: float | np.ndarray, share: float) -> np.ndarray:
        """Positive values with this noise in their logarithm."""
        return level * np.exp(self(share))


def _every(values: np.ndarray, every: int, first: int | None = None) -> np.ndarray:
    """Only the values of every so many steps are written."""
    kept = np.full(len(values), np.nan)
    at = np.arange((every if first is None else first) - 1, len(values), every)
    kept[at] = values[at]
    return kept


def _curriculum(g: np.random.Generator) -> Columns:
    n = int(g.integers(150, 450))
    t = np.arange(n)
    noise = _Noise(g, n, float(g.uniform(0, 0.6)))
    warm = np.minimum(1.0, (t + 1) / g.integers(5, 40))
    skill = g.uniform(0.1, 0.3) + g.uniform(0.3, 0.5) * (1 - np.exp(-3 * np.cumsum(warm) / n))
    harder = np.zeros(n)
    places = np.sort(g.choice(np.arange(40, n - 20, 35), int(g.integers(2, 5)), replace=True))
    for place in np.unique(places):
        pace = g.uniform(20, 60)
        harder[place:] += g.uniform(0.08, 0.25) * (0.4 + 0.6 * np.exp(-(t[place:] - place) / pace))
    score = np.clip(skill - harder, 0.02, 1) + noise(0.5 / math.sqrt(g.integers(128, 1024)))
    growth = g.uniform(1.0, 3.0)
    length = noise.around(g.uniform(300, 900) * growth ** (t / n), 0.04)
    longer = length / length[:10].mean()
    gen, update = noise.around(30 * longer ** g.uniform(0.9, 1.2), 0.08), noise.around(15 * longer ** g.uniform(1.0, 1.3), 0.04)
    ref, sync = noise.around(6 * longer ** g.uniform(1.0, 1.3), 0.05), noise.around(4.0, 0.08)
    step = gen + update + ref + sync
    equal = g.random(n) < g.uniform(0, 0.12)
    share = np.clip(0.5 * (skill**4 + (1 - skill) ** 4) + g.uniform(0.1, 0.4) + noise(0.05), 0, 1)
    share[equal] = 1
    dense = g.uniform(0.3, 1.0) * warm ** g.uniform(0, 0.3)
    every = int(g.choice([5, 10, 20]))
    columns: Columns = {
        "critic/score/mean": np.clip(score, 0, 1),
        "critic/score/max": np.ones(n),
        "critic/score/min": np.zeros(n),
        "critic/advantages/max": np.where(equal, 0.0, 2.0),
        "critic/advantages/min": np.where(equal, 0.0, -2.0),
        "train/frac_reward_zero_std": share,
        TESTED: _every(np.clip(skill + g.uniform(-0.1, 0.1) + noise(0.015), 0, 1), every),
        "actor/grad_norm": noise.around(dense * np.sqrt(1.05 - share), 0.2),
        "actor/entropy": noise.around(g.uniform(0.3, 1.2) * np.exp(-g.uniform(0, 0.8) * t / n), 0.05),
        "actor/ppo_kl": np.abs(noise.around(g.uniform(0.0005, 0.004) * warm, 0.4)),
        "actor/kl_loss": noise.around(1e-4 + g.uniform(0.05, 0.3) * (1 - np.exp(-2 * np.cumsum(warm) / n)), 0.1),
        "actor/pg_clipfrac": np.clip(noise.around(g.uniform(0.002, 0.08) * warm, 0.25), 0, 1),
        "actor/lr": 1e-6 * warm,
        "actor/pg_loss": noise(0.02),
        "training/rollout_probs_diff_mean": noise.around(g.uniform(0.001, 0.003), 0.1),
        "response_length/mean": length,
        "response_length/clip_ratio": np.clip(noise.around(g.uniform(0.001, 0.02), 0.3), 0, 1),
        "response/aborted_ratio": np.zeros(n),
        "training/off_policy/trajectory_staleness/mean": np.clip(g.uniform(0, 2) + noise(0.2), 0, None),
        "ppo_actor/update/importance_weight/avg": 1 + noise(0.008) * warm,
        "ppo_actor/update/behave_imp_weight/avg": 1 + noise(0.03),
        "ppo_actor/no_eos_ratios/avg": np.clip(noise.around(g.uniform(0.001, 0.02), 0.3), 0, 1),
        "timing_s/gen": gen,
        "timing_s/update_actor": update,
        "timing_s/ref": ref,
        "timing_s/update_weights": sync,
        "timing_s/testing": _every(noise.around(90.0, 0.1), every),
        "perf/throughput": 512 * length / step,
    }
    columns["timing_s/step"] = step + np.nan_to_num(columns["timing_s/testing"])
    return columns


def _heavy(g: np.random.Generator) -> Columns:
    n = int(g.integers(150, 450))
    t = np.arange(n)
    noise, tail = _Noise(g, n, float(g.uniform(0, 0.5))), _Noise(g, n, 0.0, float(g.uniform(2.2, 4)))
    unit = 10.0 ** g.uniform(-1, 3)
    rise = g.uniform(3, 8) * (1 - np.exp(-3 * t / (g.uniform(0.4, 1.0) * n)))
    score = unit * (g.uniform(-4, 2) + rise + tail(0.5) + noise(0.3))
    spread = unit * g.uniform(2, 4)
    length = noise.around(g.uniform(200, 800), 0.1)
    stragglers = 1 + 0.15 * g.pareto(2.5, n)
    gen, update = noise.around(g.uniform(20, 60), 0.05) * stragglers, noise.around(g.uniform(10, 30), 0.04)
    every, rare, loss, grad = (int(g.choice(c)) for c in ([5, 10], [1, 2, 5], [2, 5], [1, 2]))
    step = gen + update
    return {
        "critic/score/mean": score,
        "critic/score/max": score + spread * (1 + g.pareto(1.5, n)),
        "critic/score/min": score - spread * (1 + g.pareto(2.0, n)),
        "critic/advantages/max": 2 + g.pareto(2.0, n),
        "critic/advantages/min": -2 - g.pareto(2.0, n),
        TESTED: _every(unit * (g.uniform(-1, 1) + rise + tail(0.2)), every),
        "actor/grad_norm": _every(np.exp(tail(0.35)) * g.uniform(0.2, 2), grad),
        "actor/entropy": _every(noise.around(g.uniform(0.3, 1.2) * np.exp(-g.uniform(0, 0.8) * t / n), 0.06), loss, 1),
        "actor/ppo_kl": _every(np.exp(_Noise(g, n, 0.0, 3.0)(0.7)) * g.uniform(0.0003, 0.003), loss),
        "actor/kl_loss": np.where(g.random(n) < 0.02, 100.0, 1.0) * noise.around(1e-3 + 0.1 * (1 - np.exp(-2 * t / n)), 0.2),
        "actor/pg_clipfrac": _every(np.clip(noise.around(g.uniform(0.002, 0.08), 0.4), 0, 1), loss),
        "actor/pg_loss": _every(tail(0.02), loss),
        "training/rollout_probs_diff_mean": _every(np.clip(np.exp(tail(0.15)) * g.uniform(0.001, 0.0025), 0, 0.2), rare),
        "response_length/mean": length,
        "response_length/clip_ratio": np.clip(np.exp(tail(0.3)) * g.uniform(0.001, 0.012), 0, 1),
        "response/aborted_ratio": np.where(g.random(n) < 0.1, g.uniform(0, 0.3, n), 0.0),
        "training/off_policy/trajectory_staleness/mean": _every(np.clip(g.uniform(0, 2) + np.abs(tail(0.5)), 0, None), rare),
        "ppo_actor/update/importance_weight/avg": _every(1 + tail(0.01), loss),
        "ppo_actor/update/behave_imp_weight/avg": _every(1 + tail(0.03), loss),
        "ppo_actor/no_eos_ratios/avg": np.clip(np.exp(tail(0.3)) * g.uniform(0.001, 0.012), 0, 1),
        "timing_s/gen": _every(gen, rare),
        "timing_s/update_actor": _every(update, rare),
        "timing_s/step": _every(step, rare),
        "perf/throughput": _every(512 * length / step, rare),
    }


def _long(g: np.random.Generator) -> Columns:
    n = LONG_STEPS
    t = np.arange(n)
    rho = float(g.choice([0.6, 0.8, 0.9, 0.95, 0.98]))
    slow, fast = _Noise(g, n, rho), _Noise(g, n)

    def around(level: float | np.ndarray, share: float) -> np.ndarray:
        return level * np.exp(slow(share * 0.8) + fast(share * 0.6))

    skill = g.uniform(0.1, 0.3) + g.uniform(0.3, 0.55) * (1 - np.exp(-3 * t / (g.uniform(0.3, 1.0) * n)))
    size = g.uniform(0.02, 0.05)
    machines = np.ones(n)
    for place in sorted(int(p) for p in g.choice(np.arange(100, n - 60), 2, replace=False)):
        machines[place:] = g.uniform(0.9, 1.12)
    length = around(g.uniform(200, 800) * np.exp(g.uniform(-0.1, 0.2) * t / n), 0.05)
    gen, update = around(40.0 * machines, 0.06), around(20.0 * machines, 0.04)
    ref, sync = around(8.0 * machines, 0.05), around(4.0, 0.08)
    step = gen + update + ref + sync
    every = int(g.choice([10, 25, 50]))
    columns: Columns = {
        "critic/score/mean": np.clip(skill + slow(size * 0.8) + fast(size * 0.6), 0, 1),
        "critic/score/max": np.ones(n),
        "critic/score/min": np.zeros(n),
        "critic/advantages/max": np.full(n, 2.0),
        "critic/advantages/min": np.full(n, -2.0),
        TESTED: _every(np.clip(skill - 0.03 + fast(0.02), 0, 1), every),
        "actor/grad_norm": around(g.uniform(0.2, 1), 0.2),
        "actor/entropy": around(g.uniform(0.5, 2) * np.exp(-g.uniform(0, 0.9) * t / n), 0.05),
        "actor/ppo_kl": np.abs(slow(0.002) + fast(0.002)) + 0.001,
        "actor/kl_loss": around(1e-3 + 0.3 * (1 - np.exp(-2 * t / n)), 0.1),
        "actor/pg_clipfrac": np.clip(around(g.uniform(0.005, 0.1), 0.25), 0, 1),
        "actor/pg_loss": fast(0.02),
        "training/rollout_probs_diff_mean": around(g.uniform(0.001, 0.003), 0.1),
        "response_length/mean": length,
        "response_length/clip_ratio": np.clip(around(g.uniform(0.002, 0.02), 0.25), 0, 1),
        "response/aborted_ratio": np.zeros(n),
        "training/off_policy/trajectory_staleness/mean": np.clip(g.uniform(0, 2) + slow(0.2), 0, None),
        "ppo_actor/update/importance_weight/avg": 1 + slow(0.01),
        "ppo_actor/update/behave_imp_weight/avg": 1 + slow(0.03),
        "ppo_actor/no_eos_ratios/avg": np.clip(around(g.uniform(0.002, 0.02), 0.25), 0, 1),
        "timing_s/gen": gen,
        "timing_s/update_actor": update,
        "timing_s/ref": ref,
        "timing_s/update_weights": sync,
        "timing_s/step": step,
        "perf/throughput": 512 * length / step,
    }
    return columns
