"""RRD227 the precision differs

Story
    Engine and reference have the same weights and round differently: another dtype, other kernels. Small differences are normal. Large ones make the
    policy off-policy, and actor/grad_norm rises (verl's FAQ).

Evidence
    The mean difference of probabilities (verl's rollout_probs_diff_mean) against 0.005 and 0.01, and what another precision alone changes in the
    reference on the same tokens.

Remedy
    Run both sides in the same dtype. vLLM with long texts on GPUs other than Hopper: disable_cascade_attn=True (vLLM issue 22103).

Not this when
    The differences are several times larger than rounding makes them: then it is the weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.differences import ALARM, NORMAL
from ray_rl_debug.rollouts.rules import attention, output_rows, update
from ray_rl_debug.rollouts.view import Size, View, numbers

ID = "RRD227"
NAME = "the precision differs"
CAUSE = Cause.PRECISION
REMEDY = (
    "run both sides in the same dtype: vllm serve --dtype, sglang --dtype, and the trainer's own",
    "long texts with vLLM on GPUs other than Hopper: +actor_rollout_ref.rollout.engine_kwargs.vllm.disable_cascade_attn=True (vLLM issue 22103)",
    "until then correct for it: importance weights between rollout and training (verl: algorithm.rollout_correction)",
)


def detect(view: View) -> Iterator[Found]:
    """Differences of the size that rounding makes; silent where a missing weight update or the cache explains them."""
    far = view.distance
    if view.size is not Size.ROUNDING or far is None or any(next(rule.detect(view), None) is not None for rule in (update, output_rows, attention)):
        return
    mean = far.probs_diff_mean
    level = (
        f"above {ALARM:g}, where verl's FAQ sees a precision problem"
        if mean > ALARM
        else f"above {NORMAL:g}, the usual limit of verl's FAQ, and below {ALARM:g}"
        if mean > NORMAL
        else f"normal is below {NORMAL:g}"
    )
    yield Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.LIKELY if _is_alike(view) else Certainty.POSSIBLE,
        summary=f"{_says(view)}; rollout_probs_diff_mean is {mean:.2g} ({level})",
        evidence=tuple(numbers(view)),
        remedy=REMEDY if mean > NORMAL else (),
        is_trouble=mean > ALARM,
    )


def _is_alike(view: View) -> bool:
    """The engine's differences go the same ways as those of rounding: more than chance (three standard errors) explains."""
    return view.likeness is not None and view.likeness > 3 / math.sqrt(len(view.places))


def _says(view: View) -> str:
    trial = view.trial
    if view.noise is None:
        return "the log-probabilities differ about as much as rounding makes them"
    said = f"the log-probabilities differ from {trial.precision} as much as {trial.rounding} does"
    return (
        said
        if _is_alike(view)
        else f"{said}, though not at the same tokens: other kernels, or weights that differ a little, such as a quantised copy"
    )
