"""Where each rule draws its line: documented defaults that ``--threshold NAME=VALUE`` sets.

*guide* marks a number that a guide of verl or AReaL gives; the others are ours, chosen so that healthy runs stay clear of them
(``benchmarks/metrics_alarms.py`` counts the false alarms).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from ray_rl_debug.model.errors import UsageError


class Threshold(NamedTuple):
    """One line."""

    value: float
    meaning: str
    source: str = "ours"


THRESHOLDS: dict[str, Threshold] = {
    "min_points": Threshold(8, "values of a metric below which no limit is judged"),
    "min_trend": Threshold(20, "values of a metric below which no trend is judged"),
    "window": Threshold(5, "values whose median must be beyond a limit"),
    "alpha": Threshold(0.005, "largest p of a test that may accuse"),
    "importance_weight": Threshold(0.1, "distance of importance_weight's average from 1"),
    "importance_weight_single": Threshold(0.01, "the same with ppo_n_minibatches 1, where theory says exactly 1"),
    "behave_imp_weight": Threshold(0.2, "distance of behave_imp_weight's average from 1"),
    "behave_imp_weight_cap": Threshold(5, "recommended behave_imp_weight_cap", "guide: AReaL"),
    "staleness": Threshold(8, "versions between the policy that sampled and the one that learns; max_head_offpolicyness where that is known"),
    "no_eos_ratio": Threshold(0.05, "part of the trajectories cut off before their end token", "guide: AReaL"),
    "seq_len_rise": Threshold(1.25, "growth of the sequence length, as a factor"),
    "response_clip_ratio": Threshold(0.05, "part of the responses that reach the longest length", "guide: AReaL, for no_eos_ratio"),
    "aborted_ratio": Threshold(0.05, "part of the rollouts that were aborted"),
    "evicted_samples": Threshold(0, "rollouts thrown away at one step"),
    "rejected_in_row": Threshold(100, "rollouts rejected since one was accepted; of one in twenty accepted, chance makes that once in 200 times"),
    "rollout_probs_diff_normal": Threshold(0.005, "rollout_probs_diff_mean is below this under normal circumstances", "guide: verl"),
    "rollout_probs_diff": Threshold(0.01, "rollout_probs_diff_mean above this is a precision issue", "guide: verl"),
    "long_sequence": Threshold(4096, "tokens of prompt and response from which sequences count as long"),
    "reward_gain": Threshold(0.05, "rise of the reward over the run, as part of its range, below which it is flat"),
    "reward_flat_points": Threshold(50, "values of the reward below which it is not called flat"),
    "reward_fall": Threshold(0.1, "fall of the reward, as part of its range, from which it is told"),
    "reward_fall_sure": Threshold(0.25, "fall from which it is likely; less may be slow noise"),
    "reward_noise": Threshold(0.2, "standard deviation of the reward around its trend, as part of its range"),
    "test_gap": Threshold(0.1, "growth of the distance between train and test reward, as part of the range"),
    "grad_norm_rise": Threshold(3, "rise of the gradient norm, as a factor"),
    "policy_kl": Threshold(0.1, "KL between the policies before and after an update"),
    "reference_kl": Threshold(1, "KL between the policy and the reference"),
    "kl_rise": Threshold(10, "factor by which a KL takes off"),
    "kl_part": Threshold(0.3, "part of its limit that a KL reaches which takes off"),
    "clip_fraction": Threshold(0.3, "part of the tokens whose ratio is clipped"),
    "entropy_fall": Threshold(0.2, "what is left of the entropy, as a factor"),
    "step_time_rise": Threshold(1.3, "rise of the time per step, as a factor"),
    "phase_time_rise": Threshold(1.5, "rise of the time of a phase, as a factor"),
    "phase_share": Threshold(0.05, "part of the step from which a phase is judged"),
    "throughput_fall": Threshold(0.75, "what is left of the throughput, as a factor"),
}


def read_thresholds(given: Iterable[str]) -> dict[str, float]:
    """All thresholds, those given as ``NAME=VALUE`` changed.

    Raises:
        UsageError: an unknown name, or a value that is no number.
    """
    values = {name: t.value for name, t in THRESHOLDS.items()}
    for text in given:
        name, equal, value = text.partition("=")
        name = name.strip()
        if name not in values:
            raise UsageError(f"no threshold {name!r}", hint=f"the thresholds are: {', '.join(THRESHOLDS)}")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not equal or not math.isfinite(number) or number < 0:
            raise UsageError(f"--threshold {text!r} gives no number", hint=f"write it as {name}={THRESHOLDS[name].value:g}")
        values[name] = number
    return values
