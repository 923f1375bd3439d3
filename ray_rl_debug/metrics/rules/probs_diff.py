"""RRD710 engine and trainer disagree on probabilities

Story
    The inference engine and the trainer give different probabilities to the same tokens. The policy gradient is then computed for samples that
    another policy made; a gradient norm that rises and rises is the usual sign.

Evidence
    rollout_probs_diff_mean over several steps: below 0.005 is normal, above 0.01 is a precision issue of the engine. Which of the three
    conditions of the known vLLM case hold: no Hopper GPU, vLLM with its issue 22103, long sequences.

Remedy
    If all three conditions hold: +actor_rollout_ref.rollout.engine_kwargs.vllm.disable_cascade_attn=True. Else compare engine and trainer token
    by token.

Not this when
    Weights of the engine are old by design (asynchronous training): then part of the difference is staleness. The metric is there with
    actor_rollout_ref.rollout.calculate_log_probs=True only.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, beyond, drift, good, short, too_short
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.model.report import Certainty

ID = "RRD710"
NAME = "engine and trainer disagree on probabilities"
RULE = modules[__name__]
CASCADE = "+actor_rollout_ref.rollout.engine_kwargs.vllm.disable_cascade_attn=True"
FIXED_IN = (0, 10, 2)
"""Newest version of vLLM that is known to have the fault."""


def judge(bench: Bench) -> Iterator[Judgement]:
    """Beyond the first line possible, beyond the second likely."""
    normal, wrong = bench.threshold("rollout_probs_diff_normal"), bench.threshold("rollout_probs_diff")
    for series in bench.all(Quantity.PROBS_DIFF):
        if (early := too_short(RULE, series, bench.count("min_points"))) is not None:
            yield early
            continue
        found = beyond(bench, series, lambda v: v - wrong)
        is_wrong = found is not None and not found.excursion.is_over
        if not is_wrong:
            found = beyond(bench, series, lambda v: v - normal) or found
        if found is None:
            yield good(RULE, series.name, f"below {normal:g}", high=normal)
            continue
        conditions = _conditions(bench)
        sure = found.certainty if is_wrong else Certainty.POSSIBLE
        text = f"{series.name} is {found.text(f'below {normal:g}')}" + (f", above {wrong:g} is a precision issue" if is_wrong else "")
        held = [holds for holds, _ in conditions]
        if all(h is True for h in held):
            remedy: tuple[str, ...] = (f"all three conditions of the known vLLM fault hold: add {CASCADE}",)
        elif False in held:
            remedy = ("not all conditions of the known vLLM fault hold: compare engine and trainer token by token, with dtype and kernels in mind",)
        else:
            remedy = (
                f"if all three conditions hold, add {CASCADE}; name what is not known: --set gpu=A100 --set engine=vllm --set engine_version=0.10.2",
            )
        rising = _rising_gradient(bench)
        evidence = (*(text for _, text in conditions), *((rising,) if rising else ()))
        yield bad(RULE, series.name, sure, text, found.first_step, high=normal, remedy=remedy, evidence=evidence)


def _conditions(bench: Bench) -> list[tuple[bool | None, str]]:
    """Each condition: does it hold (None: not known), and the sentence for it."""
    gpu = bench.setting("gpu") or bench.setting("gpu_type") or bench.setting("gpu_name")
    other = None if gpu is None else re.search(r"\bH(100|200|800|20)\b|GH200|hopper", gpu, re.IGNORECASE) is None
    found = [(other, f"GPU is not Hopper: {_told(other)}{f' ({gpu})' if gpu else ''}")]
    engine, version = bench.setting("engine") or _engine(bench), bench.setting("engine_version")
    is_vllm = None if engine is None else "vllm" in engine.lower()
    if is_vllm and version is not None:
        numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:3])
        is_vllm = numbers <= FIXED_IN if numbers else None
    elif is_vllm:
        is_vllm = None
    about = f" ({engine}{f' {version}' if version else ', its version is not known'})" if engine else ""
    found.append((is_vllm, f"vLLM with its issue 22103: {_told(is_vllm)}{about}"))
    length = _length(bench)
    limit = bench.threshold("long_sequence")
    is_long = None if length is None else length >= limit
    found.append((is_long, f"long sequences: {_told(is_long)}" + (f" ({length:.0f} tokens; long from {limit:.0f})" if length is not None else "")))
    return found


def _engine(bench: Bench) -> str | None:
    """verl: ``actor_rollout_ref.rollout.name``."""
    return next((v for k, v in bench.run.settings.items() if k.replace("/", ".").endswith("rollout.name")), None)


def _length(bench: Bench) -> float | None:
    """Tokens of prompt and response at the last steps."""
    names = ("prompt_length/mean", "response_length/mean")
    parts = [bench.run.series[n].finite()[1] for n in names if n in bench.run.series]
    whole = bench.one(Quantity.SEQ_LEN)
    if len(parts) == len(names) and all(parts):
        return sum(statistics.median(p[-20:]) for p in parts)
    return statistics.median(whole.finite()[1][-20:]) if whole is not None else None


def _rising_gradient(bench: Bench) -> str | None:
    factor = bench.threshold("grad_norm_rise")
    for series in bench.all(Quantity.GRAD_NORM):
        if len(series.finite()[0]) >= bench.count("min_trend"):
            found = drift(bench, series, up=True, is_large=lambda before, now: before > 0 and now > factor * before)
            if found is not None:
                return f"{series.name} rises as well, by a factor of {short(found.factor)}: {found.text()}"
    return None


def _told(holds: bool | None) -> str:
    return {True: "yes", False: "no", None: "not known"}[holds]
