"""RRD705 answers cut off

Story
    More than one in twenty trajectories ends without its end token, because it reached the longest length. Its reward judges half an answer. When
    answers grow while training, more and more are cut off.

Evidence
    no_eos_ratio over several steps; whether the sequence length grows, since which step and how much.

Remedy
    Raise max_new_tokens, or filter trajectories that are too long.

Not this when
    The environment ends episodes by itself, so that no end token is expected.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.advice import FILTERED, LONGER
from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import Beyond
from ray_rl_debug.metrics.lengths import growing_length
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Said, at_most, judge_limit

ID = "RRD705"
NAME = "answers cut off"
RULE = modules[__name__]


def judge(bench: Bench) -> Iterator[Judgement]:
    """The ratio, and beside it the length that may be the reason."""

    def say(_: Beyond) -> Said:
        growth = growing_length(bench, bench.threshold("seq_len_rise"))
        after, evidence = (f"; sequences grow: {growth.words}", (growth.words,)) if growth is not None else ("", ())
        return Said(remedy=(LONGER, FILTERED), after=after, evidence=evidence)

    yield from judge_limit(RULE, bench, Quantity.NO_EOS_RATIO, at_most(bench.threshold("no_eos_ratio")), say)
