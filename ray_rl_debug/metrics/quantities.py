"""What the metrics of the frameworks are called. Names of foreign code stand here only, never in a rule.

verl 0.9.1 (``verl/trainer/ppo/metric_utils.py``, ``utils/debug/metrics.py``), AReaL 1.0.4 (``areal/trainer/ppo/actor.py``,
``utils/stats_tracker.py``), TRL (``trl/trainer/grpo_trainer.py``), OpenRLHF, slime, NeMo-RL, RLlib
and Stable-Baselines3. A pattern is a regular expression that the whole name must match; the
first pattern that some name matches is taken, so the best comes first.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping


class Quantity(str, enum.Enum):
    """What a metric means; the value is the name for ``--map``."""

    REWARD = "reward"
    TEST_REWARD = "test_reward"
    REWARD_MAX = "reward_max"
    REWARD_MIN = "reward_min"
    REWARD_STD = "reward_std"
    EQUAL_GROUPS = "equal_groups"
    ADVANTAGE_MAX = "advantage_max"
    ADVANTAGE_MIN = "advantage_min"
    IMPORTANCE_WEIGHT = "importance_weight"
    BEHAVE_IMP_WEIGHT = "behave_imp_weight"
    STALENESS = "staleness"
    NO_EOS_RATIO = "no_eos_ratio"
    SEQ_LEN = "seq_len"
    PROBS_DIFF = "rollout_probs_diff"
    GRAD_NORM = "grad_norm"
    POLICY_KL = "policy_kl"
    REFERENCE_KL = "reference_kl"
    CLIP_FRACTION = "clip_fraction"
    ENTROPY = "entropy"
    RESPONSE_CLIP_RATIO = "response_clip_ratio"
    ABORTED_RATIO = "aborted_ratio"
    EVICTED = "evicted_samples"
    STEP_TIME = "step_time"
    PHASE_TIME = "phase_time"
    THROUGHPUT = "throughput"
    LOSS = "loss"


_ANY = r"(?:.*/)?"
PATTERNS: Mapping[Quantity, tuple[str, ...]] = {
    Quantity.REWARD: (
        "critic/score/mean",
        "critic/rewards/mean",
        "ppo_actor/task_reward/avg",
        "rollout/raw_reward",
        "objective/rlhf_reward",
        "rollout/reward(?:/avg)?",
        f"{_ANY}(?:avg_reward|avg_raw_reward|average_reward(?:_score)?|episode_return_mean|episode_reward_mean|ep_rew_mean|episodic_return|episode_reward)",
        f"{_ANY}(?:task_reward|train_reward|mean_reward|reward_mean|reward|rewards)(?:/(?:avg|mean))?",
        "(?:train[/_])?(?:acc|accuracy)",
    ),
    Quantity.TEST_REWARD: (
        r"val-core/.+/mean@\d+(?:/mean)?",
        r"val-core/.+",
        r"val/test_score/.+",
        r"eval[-_]rollout/(?:.*/)?reward(?:/avg)?",
        r"(?:eval|test|val|validation)[-_/](?:.*/)?(?:reward|score|accuracy|acc)(?:/(?:avg|mean))?",
    ),
    Quantity.REWARD_MAX: ("critic/score/max", "critic/rewards/max", "ppo_actor/task_reward/max", "rollout/reward/max"),
    Quantity.REWARD_MIN: ("critic/score/min", "critic/rewards/min", "ppo_actor/task_reward/min", "rollout/reward/min"),
    Quantity.REWARD_STD: (f"{_ANY}reward_std",),
    Quantity.EQUAL_GROUPS: (f"{_ANY}frac_reward_zero_std",),
    Quantity.ADVANTAGE_MAX: ("critic/advantages/max", f"{_ANY}advantages/max"),
    Quantity.ADVANTAGE_MIN: ("critic/advantages/min", f"{_ANY}advantages/min"),
    Quantity.IMPORTANCE_WEIGHT: (f"{_ANY}importance_weight/avg", f"{_ANY}importance_weight"),
    Quantity.BEHAVE_IMP_WEIGHT: (f"{_ANY}behave_imp_weight/avg", "rollout_corr/rollout_is_mean", f"{_ANY}behave_imp_weight"),
    Quantity.STALENESS: (
        "training/off_policy/trajectory_staleness/mean",
        f"{_ANY}sample_staleness_theta_avg(?:/avg)?",
        f"{_ANY}sample_staleness_proximal_avg(?:/avg)?",
        f"{_ANY}staleness(?:/(?:avg|mean))?",
    ),
    Quantity.NO_EOS_RATIO: (f"{_ANY}no_eos_ratios?(?:/avg)?",),
    Quantity.SEQ_LEN: (
        "ppo_actor/seq_len/avg",
        "response_length/mean",
        f"{_ANY}seq_len(?:/avg)?",
        f"{_ANY}response_len(?:gth)?(?:/(?:avg|mean))?",
        f"{_ANY}completions/mean_length",
        f"{_ANY}(?:mean_generation_length|mean_completion_length|mean_response_length|completion_length)",
    ),
    Quantity.PROBS_DIFF: (f"{_ANY}rollout_probs_diff_mean", f"{_ANY}rollout_probs_diff"),
    Quantity.GRAD_NORM: (
        "actor/grad_norm",
        f"{_ANY}grad_norm(?:/avg)?",
        f"{_ANY}(?:actor_grad_norm|raw_grad_norm|grad_gnorm|gradients_\\w+_global_norm)",
    ),
    Quantity.POLICY_KL: (
        "actor/ppo_kl",
        f"{_ANY}update/approx_kl/avg",
        f"{_ANY}(?:approx_kl|kl_approx|ppo_kl)(?:/avg)?",
        f"{_ANY}(?:approxkl_avg|policy_kl|learner_stats/kl|mean_kl_loss)",
    ),
    Quantity.REFERENCE_KL: (
        "actor/kl_loss",
        "critic/kl",
        "actor/reward_kl_penalty",
        f"{_ANY}ref_kl(?:/avg)?",
        f"(?!.*(?:learner_stats|rollout_corr)/){_ANY}kl(?:_loss|_div)?(?:/(?:avg|mean))?",
    ),
    Quantity.CLIP_FRACTION: (
        "actor/pg_clipfrac",
        f"{_ANY}update/clip_ratio/avg",
        f"{_ANY}(?:clip_?frac(?:tion)?|pg_clipfrac)(?:/(?:avg|mean))?",
        "(?:train/)?clip_ratio(?:/region_mean)?",
        f"{_ANY}ppo_clip_ratio",
        "policy/clipfrac_avg",
    ),
    Quantity.ENTROPY: (
        "actor/entropy",
        "actor/entropy_loss",
        "policy/entropy_avg",
        f"{_ANY}policy_entropy",
        f"{_ANY}update/entropy/avg",
        f"{_ANY}entropy(?:_loss)?(?:/(?:avg|mean))?",
    ),
    Quantity.RESPONSE_CLIP_RATIO: (
        "response_length/clip_ratio",
        f"{_ANY}response_clip_ratio",
        f"{_ANY}completions/clipped_ratio",
        "rollout/truncated(?:_ratio)?",
        f"{_ANY}truncated_(?:ratio|rate|fraction)(?:/(?:avg|mean))?",
    ),
    Quantity.ABORTED_RATIO: ("response/aborted_ratio", f"{_ANY}aborted_ratio"),
    Quantity.EVICTED: ("training/(?:off_policy|rollout_failure)/evicted_samples", f"{_ANY}evicted_samples"),
    Quantity.STEP_TIME: (
        "timing_s/step",
        "perf/time_per_step",
        f"{_ANY}(?:step_time|time_per_step|total_step_time|time_this_iter|step_total)(?:_s)?",
        "time",
    ),
    Quantity.PHASE_TIME: (
        "timing_s/(?!step$|testing$|save_checkpoint$)[^/]+",
        "timeperf/(?!eval$|save$|checkpoint$|recover)[^/]+",
        "timing/(?!(?:total_)?step)[^/]+",
    ),
    Quantity.THROUGHPUT: ("perf/throughput", f"{_ANY}(?:throughput|tokens_per_(?:gpu_per_)?s(?:ec(?:ond)?)?)"),
    Quantity.LOSS: (
        "(?:actor|critic)/(?:pg_loss|loss|vf_loss)",
        f"{_ANY}(?:actor_loss|critic_loss|policy_loss|pg_loss|total_loss|lm_loss|train(?:ing)?_loss|avg_loss|mean_loss|loss)(?:/avg)?",
        "loss/policy_avg",
    ),
}

SEVERAL = frozenset((Quantity.TEST_REWARD, Quantity.PHASE_TIME, Quantity.EVICTED, Quantity.LOSS, Quantity.GRAD_NORM))
"""Quantities of which a run may have more than one metric, each judged by itself."""

VALIDATION_S = ("timing_s/testing", "timing_s/save_checkpoint", "timeperf/eval", "timeperf/save")
"""Times that belong to single steps only."""


def find(quantity: Quantity, names: Iterable[str], given: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Which of `names` hold a quantity, sorted; ``given`` is what the user said with ``--map``."""
    names = sorted(names)
    if given and quantity.value in given:
        return tuple(n for n in names if n == given[quantity.value])
    taken = set(given.values()) if given else set()
    for pattern in PATTERNS[quantity]:
        found = tuple(n for n in names if n not in taken and re.fullmatch(pattern, n if "/" in n else n.replace(".", "/")))
        if found:
            # what stands above others sums them up: collection/reward_mean, then collection/agent_1/reward_mean
            return found if quantity in SEVERAL else (min(found, key=lambda n: (n.count("/"), n)),)
    return ()


def framework_of(names: Iterable[str]) -> str | None:
    """Whose names these are."""
    names = list(names)
    for framework, marks in (
        ("verl", ("timing_s/", "critic/score/", "actor/pg_", "perf/mfu/")),
        ("areal", ("ppo_actor/", "timeperf/", "compute_logp/")),
    ):
        if any(n.startswith(marks) for n in names):
            return framework
    return None
