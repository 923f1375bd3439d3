"""Training runs made from a seed: healthy ones of three kinds, and the same with one fault from a known step on.

The healthy ones do what real runs do: the reward rises and saturates, the entropy falls, answers grow a little, the gradient norm has a warm-up,
steps vary by some percent. *plain*: independent noise. *correlated*: AR(1) noise with a lag-1 autocorrelation of 0.5 to 0.8. *spiky*: validation and
checkpoints make single steps slow, single gradients explode and are clipped, a restart goes back to weights of five steps before and is slow once.

Four kinds wander slowly, as rewards of real runs do. *phi 0.9*, *phi 0.95*, *phi 0.98*: AR(1) noise of that lag-1 autocorrelation, with the same
standard deviation. *walk*: a random walk that is reflected at twice this deviation, under independent noise of half of it; no AR(1) process.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ray_rl_debug.metrics.model import Run, Series
from ray_rl_debug.metrics.quantities import framework_of

KINDS = ("plain", "correlated", "spiky")
WANDERING = {"phi 0.9": 0.9, "phi 0.95": 0.95, "phi 0.98": 0.98, "walk": 1.0}
"""Kinds whose noise is strongly autocorrelated, with the autocorrelation of its slow part."""
WALK_STEP = 0.2
"""Of a walk, in standard deviations of the noise: it crosses its band in some hundred steps."""
ALL_KINDS = (*KINDS, *WANDERING)
Columns = dict[str, np.ndarray]


def healthy(seed: int, kind: str, steps: int | None = None) -> Columns:
    """Columns of a healthy run, verl's and AReaL's names together; the index is step - 1."""
    g = np.random.default_rng([seed, ALL_KINDS.index(kind)])
    n = steps or int(g.integers(120, 400))
    t = np.arange(n)
    rho = float(g.uniform(0.5, 0.8)) if kind == "correlated" else WANDERING.get(kind, 0.0)

    def noise(size: float) -> np.ndarray:
        if kind == "walk":
            return size * walk(g, n)
        e = g.normal(0, 1, n + 50)
        for i in range(1, n + 50):
            e[i] = rho * e[i - 1] + math.sqrt(1 - rho * rho) * e[i]
        return size * e[50:]

    def around(level: float, share: float, drift: float = 0.0) -> np.ndarray:
        return level * np.exp(noise(share) + drift * t / n)

    start, best, pace = g.uniform(0.05, 0.3), g.uniform(0.6, 0.9), g.uniform(0.3, 1.0)
    ability = start + (best - start) * (1 - np.exp(-3 * t / (pace * n)))
    length = around(g.uniform(200, 800), 0.05, g.uniform(-0.1, 0.15))
    gen, update = around(g.uniform(20, 60), 0.06), around(g.uniform(10, 30), 0.04)
    ref, sync = around(g.uniform(5, 10), 0.05), around(g.uniform(3, 5), 0.08)
    warm = 1 + g.uniform(0, 3) * np.exp(-t / g.uniform(3, 15))
    columns: Columns = {
        "critic/score/mean": np.clip(ability + noise(g.uniform(0.02, 0.06)), 0, 1),
        "critic/score/max": np.ones(n),
        "critic/score/min": np.zeros(n),
        "critic/advantages/max": np.full(n, 2.0),
        "critic/advantages/min": np.full(n, -2.0),
        "val-core/gsm8k/acc/mean@1": np.where((t + 1) % 5 == 0, np.clip(ability - 0.03 + noise(0.02), 0, 1), np.nan),
        "actor/grad_norm": around(g.uniform(0.2, 1), 0.15) * warm,
        "actor/entropy": around(g.uniform(0.5, 2), 0.05, -g.uniform(0.1, 0.9)),
        "actor/ppo_kl": np.abs(noise(0.003)) + 0.001,
        "actor/kl_loss": 0.3 * (1 - np.exp(-2 * t / n)) * np.exp(noise(0.1)),
        "actor/pg_clipfrac": np.clip(around(g.uniform(0.005, 0.12), 0.2), 0, 1),
        "actor/pg_loss": noise(0.02),
        "training/rollout_probs_diff_mean": around(g.uniform(0.001, 0.0035), 0.08),
        "response_length/mean": length,
        "response_length/clip_ratio": np.clip(around(g.uniform(0.002, 0.025), 0.2), 0, 1),
        "response/aborted_ratio": np.zeros(n),
        "training/off_policy/trajectory_staleness/mean": np.clip(g.uniform(0, 2) + noise(0.2), 0, None),
        "ppo_actor/update/importance_weight/avg": 1 + noise(0.01),
        "ppo_actor/update/behave_imp_weight/avg": 1 + noise(0.03),
        "ppo_actor/no_eos_ratios/avg": np.clip(around(g.uniform(0.002, 0.025), 0.2), 0, 1),
        "timing_s/gen": gen,
        "timing_s/update_actor": update,
        "timing_s/ref": ref,
        "timing_s/update_weights": sync,
        "timing_s/step": gen + update + ref + sync,
    }
    columns["perf/throughput"] = 1e5 * length / length.mean() / columns["timing_s/step"] * np.exp(noise(0.02)) / (length / length.mean())
    if kind == "spiky":
        _spike(columns, g, n)
    return columns


def walk(g: np.random.Generator, n: int) -> np.ndarray:
    """A random walk between two walls at -2 and 2, from anywhere between them, under noise."""
    straight = g.uniform(-2, 2) + np.cumsum(g.normal(0, WALK_STEP, n))
    reflected = np.abs((straight + 2) % 8 - 4) - 2
    return reflected + g.normal(0, 0.5, n)


def _spike(columns: Columns, g: np.random.Generator, n: int) -> None:
    every = int(g.integers(8, 25))
    tests = np.arange(every - 1, n, every)
    seconds = g.uniform(30, 200)
    columns["timing_s/testing"] = np.full(n, np.nan)
    columns["timing_s/testing"][tests] = seconds * g.uniform(0.9, 1.1, len(tests))
    columns["timing_s/step"][tests] += columns["timing_s/testing"][tests]
    columns["perf/throughput"][tests] *= 0.4
    restart = int(g.integers(n // 3, 2 * n // 3))
    for step in (0, restart):  # the first step compiles
        columns["timing_s/gen"][step] *= 4
        columns["timing_s/step"][step] += 3 * columns["timing_s/gen"][step] / 4
    for name in ("critic/score/mean", "actor/entropy", "actor/kl_loss", "response_length/mean"):
        columns[name][restart:] = columns[name][restart - 5 : n - 5].copy()
    for name, factor in (("actor/grad_norm", 20), ("actor/ppo_kl", 30), ("actor/pg_clipfrac", 3), ("ppo_actor/update/importance_weight/avg", 1.3)):
        at = g.choice(n, 3, replace=False)
        columns[name][at] *= factor


Fault = Callable[[Columns, int], None]


def _from(name: str, change: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Fault:
    def fault(columns: Columns, at: int) -> None:
        after = np.arange(len(columns[name]) - at)
        columns[name][at:] = change(columns[name][at:], after)

    return fault


def _slow_phase(columns: Columns, at: int) -> None:
    columns["timing_s/step"][at:] += columns["timing_s/gen"][at:]
    columns["timing_s/gen"][at:] *= 2


def _no_learning(columns: Columns, at: int) -> None:
    score = columns["critic/score/mean"]
    score[:] = 0.3 + 0.02 * np.random.default_rng(at).normal(size=len(score))
    columns["val-core/gsm8k/acc/mean@1"][:] = np.nan


def _over_learning(columns: Columns, at: int) -> None:
    train, test = columns["critic/score/mean"], columns["val-core/gsm8k/acc/mean@1"]
    test[:] = train - 0.03 + np.random.default_rng(at).normal(0, 0.02, len(test))
    test[at:] = np.clip(test[at:] - 0.02 * np.arange(1, len(test) - at + 1), 0, 1)


def _equal(columns: Columns, at: int) -> None:
    for name in ("critic/advantages/max", "critic/advantages/min", "critic/score/mean", "critic/score/max"):
        columns[name][at:] = 0


def _collapse(columns: Columns, at: int) -> None:
    """Answers become alike, and a part of the reward is lost with those that were right in another way."""
    entropy, score = columns["actor/entropy"], columns["critic/score/mean"]
    entropy[at:] *= np.maximum(0.88 ** np.arange(1, len(entropy) - at + 1), 0.01)
    score[at:] *= np.maximum(0.6, 1 - 0.02 * np.arange(1, len(score) - at + 1))


def _noisy(columns: Columns, at: int) -> None:
    score = columns["critic/score/mean"]
    score[at:] = np.clip(0.5 + np.random.default_rng(at).normal(0, 0.35, len(score) - at), 0, 1)


def _lost(columns: Columns, at: int) -> None:
    for values in columns.values():
        values[at : at + 6] = np.nan


FAULTS: dict[str, tuple[str, Fault]] = {
    "RRD701": ("actor/grad_norm", _from("actor/grad_norm", lambda v, _: np.full(len(v), np.inf))),
    "RRD702": ("ppo_actor/update/importance_weight/avg", _from("ppo_actor/update/importance_weight/avg", lambda v, _: v + 0.3)),
    "RRD703": ("ppo_actor/update/behave_imp_weight/avg", _from("ppo_actor/update/behave_imp_weight/avg", lambda v, _: v * 0.6)),
    "RRD704": (
        "training/off_policy/trajectory_staleness/mean",
        _from("training/off_policy/trajectory_staleness/mean", lambda v, _: v + 10),
    ),
    "RRD705": ("ppo_actor/no_eos_ratios/avg", _from("ppo_actor/no_eos_ratios/avg", lambda v, _: v + 0.1)),
    "RRD706": ("critic/score/mean", _no_learning),
    "RRD707": ("critic/score/mean", _from("critic/score/mean", lambda v, i: np.clip(v - 0.05 * (i + 1), 0, 1))),
    "RRD708": ("critic/score/mean", _noisy),
    "RRD709": ("val-core/gsm8k/acc/mean@1", _over_learning),
    "RRD710": ("training/rollout_probs_diff_mean", _from("training/rollout_probs_diff_mean", lambda v, _: v + 0.03)),
    "RRD711": ("actor/grad_norm", _from("actor/grad_norm", lambda v, i: v * 1.12 ** (i + 1))),
    "RRD712": ("actor/ppo_kl", _from("actor/ppo_kl", lambda v, _: v + 0.3)),
    "RRD713": ("actor/pg_clipfrac", _from("actor/pg_clipfrac", lambda v, _: v + 0.4)),
    "RRD714": ("actor/entropy", _collapse),
    "RRD715": ("response_length/clip_ratio", _from("response_length/clip_ratio", lambda v, _: v + 0.2)),
    "RRD716": ("response/aborted_ratio", _from("response/aborted_ratio", lambda v, _: v + 0.2)),
    "RRD717": ("steps", _lost),
    "RRD719": ("timing_s/step", _from("timing_s/step", lambda v, _: v * 1.6)),
    "RRD720": ("timing_s/gen", _slow_phase),
    "RRD722": ("critic/advantages/max", _equal),
    "RRD721": ("perf/throughput", _from("perf/throughput", lambda v, _: v * 0.5)),
}
"""By rule: the metric that it must name, and what happens to the columns from an index on. RRD718 needs an empty run."""


COLUMNS_OF = {
    "RRD709": ("critic/score/mean", "val-core/gsm8k/acc/mean@1"),
    "RRD720": ("timing_s/gen", "timing_s/step"),
    "RRD722": ("critic/advantages/max", "critic/advantages/min", "critic/score/mean", "critic/score/max"),
}
"""Faults that touch more than the metric that is named."""


def as_columns(run: Run) -> Columns:
    """A run as columns, with NaN where nothing was written; row by row, whatever its steps are called."""
    rows = {step: i for i, step in enumerate(run.steps())}
    columns = {name: np.full(len(rows), np.nan) for name in run.series}
    for name, series in run.series.items():
        for step, value in zip(*series.finite(), strict=True):
            columns[name][rows[step]] = value
    return columns


def as_run(columns: Columns, label: str = "made") -> Run:
    """Columns as a reader gives them: values that were not written are left out; steps begin at 1."""
    series = {}
    for name, values in columns.items():
        kept = [(i + 1, float(v)) for i, v in enumerate(values) if not math.isnan(v)]
        series[name] = Series(name=name, steps=tuple(s for s, _ in kept), values=tuple(v for _, v in kept))
    return Run(label=label, framework=framework_of(series), series=series)
